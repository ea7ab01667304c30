"""A record and the tags it is kept in say the same; what a person wrote by hand is kept or named."""

import contextlib
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.compatibility import FrameworkSpec, Part
from serving.registry.errors import RegistryError
from serving.registry.record import DataSetSpec, MetricsSpec, State, VersionRecord, record_of, tags_of
from tests.registries import MODEL, record


def built(kind: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """`st.builds` would take the aliases of the fields for further arguments."""
    return st.fixed_dictionaries(fields).map(lambda values: kind(**values))


text = st.text(min_size=1, max_size=30)
ratios = st.none() | st.floats(0, 1)
positive = st.none() | st.floats(0, exclude_min=True, allow_infinity=False)
counts = st.none() | st.integers(1)
hashes = st.from_regex("^[0-9a-f]{64}$", fullmatch=True)
records = built(
    VersionRecord,
    model=st.just(MODEL),
    version=st.integers(1),
    state=st.sampled_from(State),
    artefact_sha256=hashes,
    source=text,
    framework=st.none() | built(FrameworkSpec, name=st.sampled_from(["onnx", "torch"]), version=text),
    requires=st.dictionaries(st.sampled_from(get_args(Part)), st.sampled_from([">=2.40", "<3", "==1.2.*,!=1.2.3", "~=2.51.0"])),
    data_set=st.none() | built(DataSetSpec, name=text, sha256=st.none() | hashes, size=counts),
    metrics=built(
        MetricsSpec, accuracy=ratios, agreement=ratios, p50_ms=positive, p99_ms=positive, throughput_per_second=positive, size_bytes=counts
    ),
    other_tags=st.dictionaries(text.map("team/{}".format), st.text(max_size=10), max_size=3),
)
TAGS = tags_of(record(2, metrics=MetricsSpec(p99_ms=4.5), data_set=DataSetSpec(name="types", size=708), requires={"triton": ">=2.40"}))


@given(records)
def test_a_record_comes_back_from_its_tags_as_it_was(written: VersionRecord) -> None:
    assert record_of(MODEL, tags_of(written)) == written


def test_tags_are_named_after_the_fields_and_what_is_absent_has_none() -> None:
    assert {
        "inference.version": "2",
        "inference.state": "TESTING",
        "inference.artefactSha256": f"{2:064x}",
        "inference.source": "s3://models/2",
        "inference.requires.triton": ">=2.40",
        "inference.dataSet.name": "types",
        "inference.dataSet.size": "708",
        "inference.metrics.p99Ms": "4.5",
    } == TAGS


@pytest.mark.parametrize(
    "tag", ["owner", "inference.reviewed", "inference.metrics.p42Ms", "inference.metrics", "inference.", "inference.requires.cuda"]
)
def test_a_tag_that_is_not_ours_is_kept(tag: str) -> None:
    read = record_of(MODEL, {**TAGS, tag: "x"})
    assert read.other_tags == {tag: "x"}
    assert tags_of(read) == {**TAGS, tag: "x"}


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("inference.state", "active"),
        ("inference.state", ""),
        ("inference.version", "two"),
        ("inference.version", "0"),
        ("inference.artefactSha256", "abc"),
        ("inference.metrics.p99Ms", "fast"),
        ("inference.metrics.p99Ms", "nan"),
        ("inference.metrics.p99Ms", "inf"),
        ("inference.metrics.p99Ms", "-1"),
        ("inference.metrics.accuracy", "99 %"),
        ("inference.metrics.accuracy", "1.5"),
        ("inference.requires.triton", "2.40 or so"),
        ("inference.dataSet.size", "0"),
        ("inference.framework.name", "caffe"),
    ],
)
def test_nonsense_in_a_tag_is_named_with_tag_value_and_way_out(tag: str, value: str) -> None:
    with pytest.raises(RegistryError) as refused:
        record_of(MODEL, {**TAGS, "inference.framework.version": "1", "inference.framework.name": "onnx", tag: value}, mlflow_version=7)
    assert f"model 'magika', entry 7 in MLflow: tag {tag} = {value!r}: " in refused.value.message
    assert "serving/registry/README.md" in refused.value.hint


@pytest.mark.parametrize("tag", ["inference.version", "inference.artefactSha256", "inference.source", "inference.dataSet.name"])
def test_a_tag_that_somebody_deleted_is_named(tag: str) -> None:
    with pytest.raises(RegistryError, match=f"tag {tag} is missing"):
        record_of(MODEL, {key: value for key, value in TAGS.items() if key != tag})


@given(st.dictionaries(st.sampled_from(sorted(TAGS)) | text, st.text(max_size=20)))
def test_any_tags_are_a_record_or_one_clear_error(edited: dict[str, str]) -> None:
    with contextlib.suppress(RegistryError):
        record_of(MODEL, {**TAGS, **edited})
