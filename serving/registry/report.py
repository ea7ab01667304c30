"""Evaluation reports: what a measurement says about the versions of a model, as JSON.

{"model": "magika", "dataSet": {"name": "types", "sha256": "...", "size": 708}, "versions": {"2": {"accuracy": 0.99, "p50Ms": 3.1}}}
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from components.core.spec import Spec
from serving.registry.errors import RegistryError
from serving.registry.record import DataSetSpec, MetricsSpec, VersionRecord


class EvaluationReport(Spec):
    """Data set and metrics, by version."""

    model: str
    data_set: DataSetSpec
    versions: Annotated[dict[int, MetricsSpec], Field(min_length=1)]


def load_report(path: Path) -> EvaluationReport:
    """Read a report; RegistryError names the file, the key and the reason."""
    try:
        return EvaluationReport.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise RegistryError(f"report {path} cannot be read: {error}", hint="name the JSON that the evaluation wrote") from None
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
