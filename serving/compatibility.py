"""What a model's version demands of the server that runs it, and what an image gives."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, Field

from components.core.spec import Spec

# What the server of the CPU image calls itself (GET /v2): the Triton of nvidia-pytriton 0.7. tests/serving asks the built image.
CPU_IMAGE_TRITON = "2.51.0"
IMAGE_REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\;]+)", re.MULTILINE)


def _check_specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(f"{text!r} is no version specifier such as '>=2.40' or '>=2.40,<3'") from error
    return text


def _check_version(text: str) -> str:
    try:
        Version(text)
    except InvalidVersion as error:
        raise ValueError(f"{text!r} is no version such as '2.51.0'") from error
    return text


# Parts of a server that a version may depend on.
Part = Literal["triton", "onnxruntime", "torch", "tensorflow", "tensorrt"]
Specifier = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_specifier)]
Release = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_version)]
Requirements = dict[Part, Specifier]


class FrameworkSpec(Spec):
    """What wrote the network."""

    name: Literal["onnx", "torch", "tensorflow", "tensorrt", "python"]
    version: Annotated[str, Field(min_length=1, max_length=100, description="onnx: the opset; any other: the release.")]


def provided_by(variant: str, triton_version: str | None) -> dict[str, str]:
    """Versions of the parts of an image, as far as they are known: what its owner says, else what the CPU image is built of."""
    built_here = {"triton": CPU_IMAGE_TRITON, **{part: _pins()[part] for part in ("onnxruntime",) if part in _pins()}} if variant == "cpu" else {}
    return built_here | ({} if triton_version is None else {"triton": triton_version})


def unmet(requires: Mapping[Part, str], provided: Mapping[str, str]) -> list[str]:
    """A clause for each requirement that an image is known not to meet; of a part that is not known nothing is said."""
    return [
        f"needs {part} {specifier}, and the image has {provided[part]}"
        for part, specifier in requires.items()
        if part in provided and not SpecifierSet(specifier).contains(provided[part], prereleases=True)
    ]


@cache
def _pins() -> dict[str, str]:
    """Distributions in the serving image and their releases."""
    return dict(PINNED.findall(IMAGE_REQUIREMENTS.read_text(encoding="utf-8")))
