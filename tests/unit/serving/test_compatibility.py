"""What a version demands of a server is compared with what the image is known to have, and with nothing that is guessed."""

import pytest
from pydantic import TypeAdapter, ValidationError

from serving.compatibility import CPU_IMAGE_TRITON, Release, Specifier, provided_by, unmet


@pytest.mark.parametrize(
    ("specifier", "version", "fits"),
    [
        (">=2.40", "2.51.0", True),
        (">=2.51", "2.51.0", True),
        (">2.51.0", "2.51.0", False),
        (">=2.5", "2.40", True),
        (">=2.40,<2.51", "2.51.0", False),
        ("~=2.40", "3.0", False),
        (">=2.40", "2.51.0rc1", True),
    ],
)
def test_releases_are_compared_as_releases_and_not_as_text(specifier: str, version: str, fits: bool) -> None:
    clauses = unmet({"triton": specifier}, {"triton": version})
    assert clauses == ([] if fits else [f"needs triton {specifier}, and the image has {version}"])


def test_of_an_unknown_part_nothing_is_said() -> None:
    assert unmet({"triton": ">=99", "tensorrt": ">=10"}, {}) == []


def test_the_cpu_image_is_known_and_its_owner_knows_better() -> None:
    known = provided_by("cpu", None)
    assert known["triton"] == CPU_IMAGE_TRITON
    assert known["onnxruntime"]
    assert provided_by("cpu", "2.60.0") == {**known, "triton": "2.60.0"}
    assert provided_by("gpu", None) == {}
    assert provided_by("gpu", "2.60.0") == {"triton": "2.60.0"}


@pytest.mark.parametrize(
    ("kind", "text"), [(Specifier, ""), (Specifier, "2.40"), (Specifier, ">=new"), (Release, ""), (Release, ">=2.40"), (Release, "new")]
)
def test_what_is_no_specifier_and_no_release_is_refused(kind, text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(text)
