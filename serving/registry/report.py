"""Evaluation reports: what a measurement says about the versions of a model, as JSON. Two forms are read, by hand and by program.

    {"model": "magika", "dataSet": {"name": "types", "sha256": "...", "size": 708}, "versions": {"2": {"accuracy": 0.99, "p50Ms": 3.1}}}

The other is the report of the optimisation pipeline, of which only what is named here is read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from components.core.spec import Spec
from serving.registry.errors import RegistryError
from serving.registry.record import DataSetSpec, MetricsSpec, VersionRecord


class EvaluationReport(Spec):
    """Data set and metrics, by version."""

    model: str
    data_set: DataSetSpec
    versions: Annotated[dict[int, MetricsSpec], Field(min_length=1)]


class _Part(BaseModel):
    """A part of the pipeline's report; what else is there is for people."""

    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel)


class _Share(_Part):
    hits: int
    count: Annotated[int, Field(gt=0)]

    @property
    def ratio(self) -> float:
        return self.hits / self.count


class _Latency(_Part):
    batch: int
    p50_ms: float
    p99_ms: float
    examples_per_second: float


class _Row(_Part):
    name: str
    sha256: str = ""
    size_bytes: int = 0
    accuracy: _Share | None = None
    agreement: _Share | None = None
    latencies: tuple[_Latency, ...] = ()

    def metrics(self) -> MetricsSpec:
        """Latency is that of one item; throughput that of the best batch."""
        one = next((latency for latency in self.latencies if latency.batch == 1), None)
        return MetricsSpec(
            accuracy=None if self.accuracy is None else self.accuracy.ratio,
            agreement=None if self.agreement is None else self.agreement.ratio,
            p50_ms=None if one is None else one.p50_ms,
            p99_ms=None if one is None else one.p99_ms,
            throughput_per_second=max((latency.examples_per_second for latency in self.latencies), default=None),
            size_bytes=self.size_bytes or None,
        )


class _Verdict(_Part):
    version: int
    reference: int
    sha256: str


class _Examples(_Part):
    sha256: str
    evaluation: int


class _Optimisation(_Part):
    model: str
    reference: str
    examples: _Examples
    rows: tuple[_Row, ...]
    verdicts: tuple[_Verdict, ...]

    def _measured(self) -> Iterator[tuple[int, _Row]]:
        """The versions' rows: of a derived one that of its file, of the one it was derived from the reference's."""
        for verdict in self.verdicts:
            yield from ((verdict.version, row) for row in self.rows if row.sha256 == verdict.sha256)
            yield from ((verdict.reference, row) for row in self.rows if row.name == self.reference)

    def evaluation(self) -> EvaluationReport:
        data_set = DataSetSpec(name=f"{self.model} examples", sha256=self.examples.sha256, size=self.examples.evaluation)
        return EvaluationReport(model=self.model, data_set=data_set, versions={version: row.metrics() for version, row in self._measured()})


def load_report(path: Path) -> EvaluationReport:
    """Read a report; RegistryError names the file, the key and the reason."""
    try:
        content = path.read_bytes()
        if b'"verdicts"' in content:
            return _Optimisation.model_validate_json(content).evaluation()
        return EvaluationReport.model_validate_json(content)
    except OSError as error:
        raise RegistryError(f"report {path} cannot be read: {error.strerror}", hint="name the JSON that the evaluation wrote") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "(the whole file)"
        raise RegistryError(f"report {path}: {key}: {first['msg']}", hint="serving/registry/README.md shows what a report looks like") from None


def with_report(record: VersionRecord, report: EvaluationReport) -> VersionRecord:
    """The record with what the report says about its version, if anything. RegistryError for a report about another model."""
    if report.model != record.model:
        raise RegistryError(f"the report is about model {report.model!r}, not {record.model!r}", hint="name the model that was measured")
    metrics = report.versions.get(record.version)
    return record if metrics is None else record.model_copy(update={"metrics": metrics, "data_set": report.data_set})
