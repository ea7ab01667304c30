"""The report as a picture: what each variant gains in speed, and what it costs in agreement."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from serving.optimise.report import Report, Row

BAR = 0.8
THIN = 0.8
PERCENT = 100
# Bars with their whiskers, as matplotlib takes them: places, values, distances to both ends.
Bars = tuple[list[float], list[float], tuple[list[float], list[float]]]


def draw(report: Report, target: Path) -> None:
    """Two panels with a line per variant that ran. Figures need no display; the same report gives the same bytes: no date, no random identifiers."""
    rows = [row for row in reversed(report.rows) if row.not_run is None]
    with mpl.rc_context({"svg.hashsalt": "optimisation", "svg.fonttype": "none"}):
        figure = Figure(figsize=(11, 0.6 * len(rows) + 1.2), layout="constrained")
        speed, difference = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        _draw_speed(speed, rows, report.reference)
        _draw_difference(difference, rows, report)
        figure.suptitle(f"{report.model} on {report.machine.get('processor', 'this machine')}, one thread")
        figure.savefig(target, format="svg", metadata={"Date": None})


def _draw_speed(axes: Axes, rows: Sequence[Row], reference: str) -> None:
    batches = sorted({latency.batch for row in rows for latency in row.latencies}, reverse=True)
    for number, batch in enumerate(batches):
        shift = BAR * ((number + 0.5) / len(batches) - 0.5)
        timed = [(place + shift, latency) for place, row in enumerate(rows) for latency in [row.latency(batch)] if latency]
        bars = _bars([(place, each.speedup, each.speedup_low, each.speedup_high) for place, each in timed])
        _barh(axes, bars, BAR / len(batches), label=str(batch))
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.axvline(1, color="black", linewidth=THIN)
    axes.set_xlabel(f"processor time of {reference} over the variant's (whiskers: extremes of the rounds)")
    axes.legend(title="examples per call", reverse=True, fontsize="small")


def _draw_difference(axes: Axes, rows: Sequence[Row], report: Report) -> None:
    judged = [(place, row.agreement) for place, row in enumerate(rows) if row.agreement]
    bars = _bars([(place, PERCENT * (1 - each.value), PERCENT * (1 - each.high), PERCENT * (1 - each.low)) for place, each in judged])
    _barh(axes, bars, BAR, color="tab:red")
    for bound in sorted({verdict.minimum_agreement for verdict in report.verdicts}):
        axes.axvline(PERCENT * (1 - bound), color="black", linestyle="--", linewidth=THIN)
    axes.set_xlabel(f"% of answers unlike {report.reference}'s (95 %; dashed: bound)")


def _bars(values: Sequence[tuple[float, float, float, float]]) -> Bars:
    """From place, value, low and high of each."""
    return (
        [place for place, *_ in values],
        [value for _, value, _, _ in values],
        ([value - low for _, value, low, _ in values], [high - value for _, value, _, high in values]),
    )


def _barh(axes: Axes, bars: Bars, height: float, **style: Any) -> None:
    places, values, spread = bars
    axes.barh(places, values, height, xerr=spread, error_kw={"linewidth": THIN}, **style)
