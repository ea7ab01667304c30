"""Figures with their spread, the machine they were taken on, and the two files that say so."""

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.paths import REPO, content_key

# What the figures depend on; the key of their contents tells whether a result is about the code at hand.
INPUT_FOLDERS = ("components", "stacks", "serving", "loadtests", "tools")
INPUT_SUFFIXES = (".py", ".yaml", ".mod", ".sum", ".go")
JSON_FILE = "results.json"
TITLE = f"# Measured\n\nWritten by `make bench`, a part at a time; the values themselves are in `{JSON_FILE}`. Compare within a part only.\n"
EXTRA_INPUTS = ("requirements.txt", "serving/Containerfile")


def shown(value: float) -> str:
    """Three significant digits, written out: 4500, not 4.5e+03."""
    return f"{float(f'{value:.3g}'):.10g}"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One quantity, measured several times in one run."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def row(self) -> str:
        """A line of the table; a ratio has no unit."""
        low, high = shown(min(self.values)), shown(max(self.values))
        return f"| {self.name} | {shown(self.median)} {self.unit} | {low} to {high} | {len(self.values)} |".replace("  ", " ")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where the figures were taken."""

    cores: int
    memory_mib: int
    processor: str
    kernel: str
    python: str

    @classmethod
    def here(cls) -> "Machine":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
        names = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        processor = names[0] if names else platform.machine()
        return cls(
            cores=len(os.sched_getaffinity(0)), memory_mib=memory, processor=processor, kernel=platform.release(), python=platform.python_version()
        )


@dataclass(frozen=True, kw_only=True)
class Part:
    """The figures of one run; `notes` say what a reader must know to compare them."""

    figures: tuple[Figure, ...]
    machine: Machine
    versions: dict[str, str]
    notes: tuple[str, ...]
    inputs: str
    taken: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @classmethod
    def parse(cls, content: Mapping[str, Any]) -> "Part":
        """What `asdict` made of a part, read back."""
        figures = tuple(Figure(name=figure["name"], unit=figure["unit"], values=tuple(figure["values"])) for figure in content["figures"])
        rest = {**content, "figures": figures, "machine": Machine(**content["machine"]), "notes": tuple(content["notes"])}
        return cls(**rest)

    def to_markdown(self) -> str:
        where = self.machine
        lines = [
            "| figure | median | range | runs |",
            "|---|---|---|---|",
            *(figure.row() for figure in self.figures),
            "",
            f"Taken {self.taken} on {where.cores} cores ({where.processor}), {where.memory_mib} MiB, Linux {where.kernel}, Python {where.python}.",
            f"Versions: {', '.join(f'{name} {version}' for name, version in sorted(self.versions.items()))}.",
            f"Key of the inputs: `{self.inputs}`.",
            "",
            *(f"- {note}" for note in self.notes),
        ]
        return "\n".join(lines) + "\n"


def write_part(folder: Path, name: str, part: Part) -> None:
    """Write results.json and README.md with `part` under its name; the other parts stay as they are, each with its own time, machine and inputs."""
    file = folder / JSON_FILE
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    parts = {**{key: Part.parse(content) for key, content in before.items()}, name: part}
    order = sorted(parts)
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({key: asdict(parts[key]) for key in order}, indent=2) + "\n", encoding="utf-8")
    text = [TITLE, *(f"## {key}\n\n{parts[key].to_markdown()}" for key in order)]
    (folder / "README.md").write_text("\n".join(text), encoding="utf-8")


def inputs_key(repository: Path = REPO) -> str:
    """Changes when anything changes that the figures may depend on."""
    files = [file for folder in INPUT_FOLDERS for file in (repository / folder).rglob("*") if file.suffix in INPUT_SUFFIXES]
    return content_key([*files, *(repository / name for name in EXTRA_INPUTS)])


def figures_of(rounds: Sequence[dict[str, float]], unit: str) -> tuple[Figure, ...]:
    """A figure per name from rounds that each measured all of them."""
    return tuple(Figure(name=name, unit=unit, values=tuple(each[name] for each in rounds)) for name in rounds[0])
