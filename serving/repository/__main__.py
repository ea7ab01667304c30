"""`python -m serving.repository build|publish|list|verify|backup|restore|discard|fetch|prepare`: exit code 0 when done, 1 with a sentence when not."""

import sys
from collections.abc import Sequence

from components.errors import run_main
from serving.repository.cli import parse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; PlatformError passes through to `run_main`."""
    options = parse(arguments)
    options.work(options)
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
