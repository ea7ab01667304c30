"""What a measurement says about versions, in the form of the optimisation pipeline."""

import json
from pathlib import Path
from typing import Any

import pytest

from serving.registry.errors import RegistryError
from serving.registry.record import DataSetSpec, MetricsSpec
from serving.registry.report import load_report, with_report
from tests.registries import MODEL, record


def latency(batch: int, p50: float, rate: float) -> dict[str, Any]:
    return {"batch": batch, "calls": 9, "p50Ms": p50, "p99Ms": p50 + 1, "cpuP50Ms": p50, "examplesPerSecond": rate, "speedup": 1.0}


def row(name: str, sha256: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "what": "", "notRun": None, "sha256": sha256, "sizeBytes": 100, "nodes": 7, **more}


REPORT = {
    "model": MODEL,
    "reference": "fp32",
    "machine": {"cores": 2},
    "examples": {"recipe": "...", "sha256": "c" * 64, "calibration": 9, "evaluation": 700, "kinds": {}},
    "rows": [
        row(
            "fp32",
            "a" * 64,
            accuracy={"hits": 700, "count": 700, "low": 0.9, "high": 1.0},
            latencies=[latency(1, 4.0, 200.0), latency(16, 60.0, 250.0)],
        ),
        row("int8", "d" * 64, agreement={"hits": 1, "count": 700, "low": 0.0, "high": 1.0}),
        row("version-2", "b" * 64, agreement={"hits": 693, "count": 700, "low": 0.9, "high": 1.0}, latencies=[latency(16, 30.0, 500.0)]),
        {"name": "tensorrt", "what": "", "notRun": "no GPU"},
    ],
    "verdicts": [{"version": 2, "reference": 1, "transformation": "x", "sha256": "b" * 64, "minimumAgreement": 0.98}],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "optimisation.json"


def test_versions_get_the_row_of_their_file_and_the_original_that_of_the_reference(file: Path) -> None:
    file.write_text(json.dumps(REPORT))
    report = load_report(file)
    assert report.data_set == DataSetSpec(name="magika examples", sha256="c" * 64, size=700)
    assert report.versions == {
        1: MetricsSpec(accuracy=1.0, p50_ms=4.0, p99_ms=5.0, throughput_per_second=250.0, size_bytes=100),
        2: MetricsSpec(agreement=0.99, throughput_per_second=500.0, size_bytes=100),
    }
    assert with_report(record(3), report) == record(3)
    assert with_report(record(2), report).data_set == report.data_set


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"verdicts": []}, "versions: "),
        ({"verdicts": [{"version": 2}]}, "verdicts.0.reference: "),
        ({"rows": [{"name": "fp32", "accuracy": {"hits": 1, "count": 0}}]}, "rows.0.accuracy.count: "),
        ({"rows": [row("fp32", "", accuracy={"hits": 2, "count": 1})]}, "accuracy: "),
        ({"examples": {"sha256": "short", "evaluation": 1}}, "sha256: "),
    ],
)
def test_a_report_that_does_not_say_it_is_refused_with_the_key(file: Path, change: dict[str, Any], reason: str) -> None:
    file.write_text(json.dumps({**REPORT, **change}))
    with pytest.raises(RegistryError) as refused:
        load_report(file)
    assert f"report {file}: {reason}" in refused.value.message


@pytest.mark.parametrize("content", [b"", b"[]", b'"verdicts"', b"\xff", b'\xff"verdicts"', b'{"verdicts": NaN}'])
def test_what_is_no_report_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(RegistryError, match=r"report .*: "):
        load_report(file)
