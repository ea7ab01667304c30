"""The registry as people read it: one line per version, and two versions side by side."""

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from components.core.spec import Spec
from serving.registry.record import MetricsSpec, VersionRecord
from serving.registry.view import RegisteredModel

COLUMNS = ("model", "version", "state", "aliases", "created", "data set", "metrics", "artefact", "framework", "requires")
HASH_SHOWN = 12
NOTHING = "-"
# A pipe has no width of its own; 80 would break the table into pieces.
PIPE_WIDTH = 200


class Difference(Spec):
    """A metric of two versions; `change` in percent of the first, None where there is nothing to compare."""

    metric: str
    first: int | float | None
    second: int | float | None
    change_percent: float | None


def version_table(models: Iterable[RegisteredModel]) -> Table:
    """One line per version."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in COLUMNS:
        table.add_column(column, overflow="fold", justify="right" if column == "version" else "left")
    for model in models:
        for record in model.versions:
            table.add_row(*_row(record, model.aliases_of(record.version)))
    return table


def differences(first: VersionRecord, second: VersionRecord) -> list[Difference]:
    """Every metric that one of the two has."""
    before, after = (record.metrics.model_dump(by_alias=True) for record in (first, second))
    return [
        Difference(metric=name, first=before[name], second=after[name], change_percent=_change(before[name], after[name]))
        for name in before
        if before[name] is not None or after[name] is not None
    ]


def comparison_table(first: VersionRecord, second: VersionRecord) -> Table:
    """Facts and metrics of two versions, and by how much the metrics differ."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in (first.model, f"version {first.version}", f"version {second.version}", "difference"):
        table.add_column(column, justify="left" if column == first.model else "right")
    for name, one, two in _facts(first, second):
        table.add_row(name, one, two, "" if one == two else "differs")
    for each in differences(first, second):
        change = NOTHING if each.change_percent is None else f"{each.change_percent:+.1f} %"
        table.add_row(each.metric, _number(each.first), _number(each.second), change)
    return table


def show(table: Table) -> None:
    """Print with the width of the terminal, or wide into a pipe."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_WIDTH)
    console.print(table)


def _row(record: VersionRecord, aliases: list[str]) -> tuple[str, ...]:
    created = NOTHING if record.created is None else record.created.astimezone().strftime("%Y-%m-%d %H:%M")
    return (
        record.model,
        str(record.version),
        record.state.value,
        ", ".join(aliases) or NOTHING,
        created,
        _data_set(record),
        _metrics(record.metrics),
        record.artefact_sha256[:HASH_SHOWN],
        _framework(record),
        _requires(record),
    )


def _facts(first: VersionRecord, second: VersionRecord) -> Iterator[tuple[str, str, str]]:
    yield "state", first.state.value, second.state.value
    yield "artefact", first.artefact_sha256[:HASH_SHOWN], second.artefact_sha256[:HASH_SHOWN]
    for name, text in (("data set", _data_set), ("framework", _framework), ("requires", _requires)):
        yield name, text(first), text(second)


def _change(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None or before == 0 else (after - before) / before * 100


def _data_set(record: VersionRecord) -> str:
    data = record.data_set
    return NOTHING if data is None else data.name + ("" if data.size is None else f" ({data.size})")


def _metrics(metrics: MetricsSpec) -> str:
    said = metrics.model_dump(by_alias=True, exclude_none=True)
    return " ".join(f"{name}={_number(value)}" for name, value in said.items()) or NOTHING


def _framework(record: VersionRecord) -> str:
    return NOTHING if record.framework is None else f"{record.framework.name} {record.framework.version}"


def _requires(record: VersionRecord) -> str:
    return " ".join(f"{part}{specifier}" for part, specifier in record.requires.items()) or NOTHING


def _number(value: float | None) -> str:
    if value is None:
        return NOTHING
    return str(value) if isinstance(value, int) else f"{value:.4g}"
