"""`make models`: the model repository, from serving/models/*/model.yaml, as a folder or a tar file."""

import sys
from collections.abc import Sequence

from components.core.command_line import CommandLine
from serving.repository.__main__ import main as repository
from tools.cli import run_main
from tools.images.wheels import ensure_wheels
from tools.paths import REPO, cache_dir

REQUIREMENTS = [REPO / "serving" / name for name in ("requirements.txt", "build-requirements.txt")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build with the wheels that the serving image is built from, downloaded by hash."""
    options = CommandLine(prog="python -m tools.models", description="Build the model repository.")
    options.add_argument("--to", default=str(cache_dir() / "models"), help="a folder, or a file that ends in .tar; default: %(default)s")
    options.add_argument("models", nargs="*", metavar="model", help="absent: all")
    chosen = options.parse_args(arguments)
    wheels = [argument for file in REQUIREMENTS for argument in ("--wheels", str(ensure_wheels(file)))]
    return repository(["build", *wheels, "--to", chosen.to, *chosen.models])


if __name__ == "__main__":
    sys.exit(run_main(main))
