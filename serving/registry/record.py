"""The record of a published version, and the MLflow tags it is kept in.

A tag is `inference.` and the path of the field: `inference.state`, `inference.metrics.p99Ms`. Tags of anybody else are kept as they are.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, ValidationError

from components.core.spec import Spec
from serving.compatibility import FrameworkSpec, Part, Requirements
from serving.model_files import Sha256
from serving.registry.errors import RegistryError

PREFIX = "inference."
# Of a version's files; MLflow keeps as many characters.
SOURCE_MAX = 500
Ratio = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class State(StrEnum):
    """How far a version may go: TESTING gets a limited share of the traffic, ACTIVE any, ARCHIVED none."""

    TESTING = "TESTING"
    ACTIVE = "ACTIVE"
    ARCHIVED = "ARCHIVED"


class DataSetSpec(Spec):
    """What a version was evaluated on."""

    name: Annotated[str, Field(min_length=1, max_length=250)]
    sha256: Annotated[Sha256 | None, Field(description="Of its content, where it has one.")] = None
    size: Annotated[int | None, Field(ge=1, description="Number of items.")] = None


class MetricsSpec(Spec):
    """How a version did; what was not measured is absent."""

    accuracy: Annotated[Ratio | None, Field(description="Share of right answers on the data set.")] = None
    agreement: Annotated[Ratio | None, Field(description="Share of answers equal to those of the version it was made from.")] = None
    p50_ms: Annotated[Positive | None, Field(description="Median latency of one item, in milliseconds.")] = None
    p99_ms: Annotated[Positive | None, Field(description="99th percentile of it.")] = None
    throughput_per_second: Annotated[Positive | None, Field(description="Items per second.")] = None
    size_bytes: Annotated[int | None, Field(gt=0, description="Of the version's files.")] = None


class VersionRecord(Spec):
    """A version as the registry knows it. `created` and `mlflow_version` are the registry's own and no tags."""

    model: str
    version: Annotated[int, Field(ge=1, description="Version in the model repository; MLflow counts by itself.")]
    state: State = State.TESTING
    artefact_sha256: Annotated[Sha256, Field(description="Of the version's files as published, see serving/artefact.py.")]
    source: Annotated[str, Field(min_length=1, max_length=SOURCE_MAX)]
    framework: FrameworkSpec | None = None
    requires: Requirements = Field(default_factory=dict)
    data_set: DataSetSpec | None = None
    metrics: MetricsSpec = MetricsSpec()
    created: datetime | None = None
    mlflow_version: int | None = None
    other_tags: dict[str, str] = Field(default_factory=dict)


# Kept by MLflow in fields of its own.
NO_TAGS = frozenset({"model", "created", "mlflow_version", "other_tags"})


def tags_of(record: VersionRecord) -> dict[str, str]:
    """Everything about a version that MLflow keeps as tags."""
    fields = record.model_dump(mode="json", by_alias=True, exclude=set(NO_TAGS), exclude_none=True)
    return {**record.other_tags, **{PREFIX + path: value for path, value in _flat(fields)}}


def record_of(model: str, tags: Mapping[str, str], *, created: datetime | None = None, mlflow_version: int | None = None) -> VersionRecord:
    """The record in the tags of a version. Raises RegistryError with the tag, its value and the reason for what is none."""
    fields: dict[str, Any] = {}
    other = {}
    for key, value in tags.items():
        path = key.removeprefix(PREFIX).split(".")
        if key.startswith(PREFIX) and tuple(path) in _PATHS:
            node = fields
            for step in path[:-1]:
                node = node.setdefault(step, {})
            node[path[-1]] = value
        else:
            other[key] = value
    try:
        read = VersionRecord.model_validate_strings({"model": model, **fields}, strict=False, by_alias=True)
    except ValidationError as error:
        raise _unreadable(model, tags, mlflow_version, error) from None
    return read.model_copy(update={"created": created, "mlflow_version": mlflow_version, "other_tags": other})


def _unreadable(model: str, tags: Mapping[str, str], mlflow_version: int | None, error: ValidationError) -> RegistryError:
    first = error.errors(include_url=False)[0]
    tag = PREFIX + ".".join(map(str, (step for step in first["loc"] if step != "[key]")))
    said = f"tag {tag} is missing" if first["type"] == "missing" else f"tag {tag} = {tags.get(tag)!r}: {first['msg'][:200]}"
    return RegistryError(
        f"model {model!r}, entry {mlflow_version} in MLflow: {said}",
        hint="set the tag to what serving/registry/README.md allows (mlflow, or its UI), or delete the entry and register the version again",
    )


def _flat(fields: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, value if isinstance(value, str) else repr(value)


def _paths(spec: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """The path of every tag that a Spec is kept in."""
    for name, field in spec.model_fields.items():
        if spec is VersionRecord and name in NO_TAGS:
            continue
        alias = str(field.alias)
        nested = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if nested:
            yield from ((alias, *path) for path in _paths(nested[0]))
        elif field.annotation == Requirements:
            yield from ((alias, part) for part in get_args(Part))
        else:
            yield (alias,)


_PATHS = frozenset(_paths(VersionRecord))
