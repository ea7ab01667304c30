"""A report as a table for the terminal, as markdown, as JSON and as a plot."""

from pathlib import Path

from rich.table import Table

from serving.optimise.measure import Latency
from serving.optimise.plot import draw
from serving.optimise.report import Report, Row, Verdict

NAME = "optimisation"
HEADINGS = ("variant", "size", "nodes in file → run", "agreement", "accuracy", "processor p50 of 1", "speed-up (rounds)")
LATENCY_HEADINGS = ("variant", "examples per call", "calls", "p50", "p99", "processor p50", "examples/s of a core", "speed-up (rounds)")
KIB = 1024
# Clock over processor time from which on a machine counts as busy.
BUSY = 1.2
HOW_TO_READ = (
    "Agreement: the answer of the reference. Accuracy: an answer that the example's label allows. In brackets: 95 % Wilson interval. "
    "Speed-up: processor time of the reference over the variant's, for one example; median of the rounds and their extremes."
)
HOW_TO_READ_TIMES = "One thread, pre- and post-processing included; rounds take the variants in turn. p50 and p99 are clock times; p99 of fewer than 100 calls is the slowest."
WHAT_INTERVALS_MEAN = "Examples are what one machine has: an interval speaks of inputs like these, not of all inputs."


def write(report: Report, folder: Path) -> None:
    """optimisation.json, .md and .svg in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.json").write_text(report.to_json(), encoding="utf-8")
    (folder / f"{NAME}.md").write_text(markdown(report), encoding="utf-8")
    draw(report, folder / f"{NAME}.svg")


def table(report: Report) -> Table:
    """The overview for a terminal."""
    drawn = Table(*HEADINGS, title=f"{report.model}: variants beside {report.reference}")
    for row in report.rows:
        drawn.add_row(*(cells(row) if row.not_run is None else (row.name, f"did not run: {row.not_run}")))
    return drawn


def markdown(report: Report) -> str:
    """The whole report for people; `load` of the JSON beside it gives the same text."""
    ran = [row for row in report.rows if row.not_run is None]
    examples, machine = report.examples, report.machine
    blocks = [
        f"# {report.model}: variants of its network",
        f"Written by `make optimise MODEL={report.model}`; the values are in `{NAME}.json`.",
        f"![speed-up and agreement of each variant]({NAME}.svg)",
        "## Verdict",
        "\n".join(f"- {_capital(verdict)}." for verdict in report.verdicts) or "No version is derived.",
        "## Variants",
        _table(HEADINGS, [cells(row) for row in ran]),
        "\n".join(f"- {row.name} did not run: {row.not_run}." for row in report.rows if row.not_run is not None),
        HOW_TO_READ,
        "\n".join(f"- {row.name}: {row.what}{_fused(row)}." for row in ran),
        "## Times",
        _table(LATENCY_HEADINGS, [latency_cells(row, latency) for row in ran for latency in row.latencies]),
        f"{HOW_TO_READ_TIMES}{_busy(report)}",
        "## Examples",
        f"{examples.evaluation} to judge, {examples.calibration} to calibrate: {examples.recipe}.",
        f"By source: {_counts(examples.sources)}.",
        f"By kind: {_counts(examples.kinds)}.",
        WHAT_INTERVALS_MEAN,
        f"SHA-256 of the list: `{examples.sha256}`.",
        "## Where and with what",
        f"Taken {report.taken}. {', '.join(f'{name} {value}' for name, value in machine.items())}.",
        f"{', '.join(f'{name} {value}' for name, value in report.packages.items())}. Key of the inputs: `{report.inputs}`.",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def cells(row: Row) -> tuple[str, ...]:
    """A variant's line of the overview."""
    latency = row.latency(1)
    return (
        row.name,
        f"{row.size_bytes / KIB:,.0f} KiB",
        str(row.nodes) if row.nodes_run is None else f"{row.nodes} → {row.nodes_run}",
        f"{row.agreement.hits}/{row.agreement.count} ({row.agreement.low:.2%} to {row.agreement.high:.2%})" if row.agreement else "",
        f"{row.accuracy.value:.2%} ({row.accuracy.low:.2%} to {row.accuracy.high:.2%})" if row.accuracy else "",
        f"{latency.cpu_p50_ms:.2f} ms" if latency else "",
        _speedup(latency) if latency else "",
    )


def latency_cells(row: Row, latency: Latency) -> tuple[str, ...]:
    return (
        row.name,
        str(latency.batch),
        str(latency.calls),
        f"{latency.p50_ms:.2f} ms",
        f"{latency.p99_ms:.2f} ms",
        f"{latency.cpu_p50_ms:.2f} ms",
        f"{latency.examples_per_second:.0f}",
        _speedup(latency),
    )


def _speedup(latency: Latency) -> str:
    return f"{latency.speedup:.2f} ({latency.speedup_low:.2f} to {latency.speedup_high:.2f})"


def _busy(report: Report) -> str:
    """What a reader must know when others used the machine meanwhile."""
    latency = next((row.latency(1) for row in report.rows if row.name == report.reference), None)
    if latency is None or latency.p50_ms < BUSY * latency.cpu_p50_ms:
        return ""
    times = latency.p50_ms / latency.cpu_p50_ms
    return f" The machine was busy: the reference took {times:.1f} times its processor time, so clock times tell more of the machine than of the variants."


def _capital(verdict: Verdict) -> str:
    return verdict.sentence[0].upper() + verdict.sentence[1:]


def _fused(row: Row) -> str:
    return f"; run as {_counts(row.fused)}" if row.fused else ""


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = (headings, tuple("---" for _ in headings), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
