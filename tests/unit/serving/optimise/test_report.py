"""A report as people read it."""

import io

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from serving.optimise.intervals import share
from serving.optimise.measure import Latency
from serving.optimise.pipeline import raise_if_refused
from serving.optimise.render import markdown, table, write
from serving.optimise.report import Examples, Report, Row, Verdict


def latency(batch: int, p50_ms: float, speedup: float) -> Latency:
    return Latency(
        batch=batch,
        calls=100,
        p50_ms=p50_ms,
        p99_ms=p50_ms * 2,
        cpu_p50_ms=p50_ms / 2,
        examples_per_second=1000 * batch / p50_ms,
        speedup=speedup,
        speedup_low=speedup * 0.9,
        speedup_high=speedup * 1.1,
    )


@pytest.fixture
def report() -> Report:
    row = Row(
        name="fp32",
        what="as shipped",
        sha256="0" * 64,
        size_bytes=2048,
        nodes=10,
        nodes_run=7,
        fused={"Gemm": 2},
        agreement=share(1000, 1000),
        accuracy=share(900, 1000),
        latencies=(latency(1, 10, 1), latency(4, 40, 1)),
    )
    quick = {"name": "version-2", "what": "as published", "agreement": share(996, 1000), "latencies": (latency(1, 5, 2), latency(4, 20, 2))}
    slow: dict[str, object] = {"name": "tvm", "what": "compiled", "nodes_run": None, "fused": {}, "latencies": (latency(1, 400, 0.025),)}
    return Report(
        model="tiny",
        reference="fp32",
        taken="2026-01-02T03:04:05+00:00",
        inputs="0123456789abcdef",
        machine={"processor": "a processor", "cores": 2},
        packages={"onnxruntime": "1.0"},
        examples=Examples(
            recipe="all files", sha256="1" * 64, calibration=10, evaluation=1000, sources={"lib": 400, "share": 600}, kinds={"py": 999, "md": 1}
        ),
        rows=(row, row.model_copy(update=quick), row.model_copy(update=slow), Row(name="card", what="on a card", not_run="there is none")),
        verdicts=(verdict(996),),
    )


def verdict(hits: int) -> Verdict:
    return Verdict(
        version=2, reference=1, transformation="quantise-static-int8", sha256="2" * 64, minimum_agreement=0.99, agreement=share(hits, 1000)
    )


def test_the_markdown_says_all_of_it(report: Report, snapshot: SnapshotAssertion):
    assert markdown(report) == snapshot


def test_the_json_holds_what_the_markdown_is_made_of(report: Report):
    assert Report.model_validate_json(report.to_json()) == report


def test_the_terminal_shows_what_did_not_run_with_its_reason(report: Report):
    console = Console(file=io.StringIO(), width=200)
    console.print(table(report))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "did not run: there is none" in shown
    assert "996/1000 (98.98% to 99.84%)" in shown


def test_the_same_report_is_drawn_in_the_same_bytes(report: Report, tmp_path):
    write(report, tmp_path / "once")
    write(report, tmp_path / "again")
    names = ("optimisation.json", "optimisation.md", "optimisation.svg")
    assert [(tmp_path / "once" / name).read_bytes() for name in names] == [(tmp_path / "again" / name).read_bytes() for name in names]
    assert all(name in (tmp_path / "once" / "optimisation.svg").read_text() for name in ("version-2", "fp32", "tvm"))


@pytest.mark.parametrize(("hits", "accepted"), [(995, False), (996, False), (997, True), (1000, True)])
def test_a_version_is_accepted_when_the_low_end_keeps_the_bound(hits: int, accepted: bool):
    """996 of 1000 is 99.6 %, more than the bound of 99 %, but what it proves is 98.98 %."""
    assert verdict(hits).accepted is accepted


def test_a_report_without_refusals_says_nothing(report: Report):
    raise_if_refused(report.model_copy(update={"verdicts": (verdict(1000),)}))
