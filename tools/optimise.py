"""`python -m tools.optimise <model>`: variants of a model's network, judged and measured; writes docs/models/<model>/optimisation.{md,json,svg}.

Exits non-zero when a derived version of the model does not keep the bound in its model.yaml.
"""

import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from components.core.command_line import CommandLine
from serving.model_manifest import WheelSpec, model_manifest, model_names
from serving.optimise.pipeline import optimise, raise_if_refused
from serving.optimise.render import table, write
from serving.optimise.workshop import Job
from tools.bench.results import Machine
from tools.cli import run_main
from tools.images.wheels import ensure_wheels, find_wheel
from tools.paths import REPO, cache_dir

WHEELS = REPO / "serving" / "build-requirements.txt"
# Instructions that decide how fast 8-bit and 16-bit arithmetic is.
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_fp16", "amx_int8")


def wheel_of(wheel: WheelSpec) -> Path:
    return find_wheel(ensure_wheels(WHEELS), wheel.distribution, wheel.version)


def machine() -> dict[str, str | int]:
    """Where the figures are taken, with the instructions they depend on."""
    words = {word for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags") for word in line.split()}
    return {**asdict(Machine.here()), "instructions": " ".join(name for name in INSTRUCTIONS if name in words)}


def main() -> int:
    parser = CommandLine(description=__doc__)
    parser.add_argument("model", choices=model_names())
    console = Console()
    job = Job(
        manifest=model_manifest(parser.parse_args().model),
        wheels=wheel_of,
        work=cache_dir() / "optimise",
        machine=machine(),
        say=lambda text: console.print(text, markup=False, highlight=False),
    )
    report = optimise(job)
    write(report, REPO / "docs" / "models" / job.manifest.name)
    console.print(table(report))
    for verdict in report.verdicts:
        console.print(verdict.sentence, markup=False, highlight=False)
    raise_if_refused(report)
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
