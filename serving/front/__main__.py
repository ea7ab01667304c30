"""`python -m serving.front <settings.json>`: exit code 0 after a drain, 1 with a sentence when it cannot start."""

import asyncio
import sys
from pathlib import Path

from components.errors import PlatformError
from serving.front.server import run, set_up_logs
from serving.front.settings import load_settings


def main() -> int:
    if len(sys.argv) != 2:  # noqa: PLR2004  the program and its one argument
        print("usage: python -m serving.front <settings.json>", file=sys.stderr)
        return 2
    set_up_logs()
    try:
        settings = load_settings(Path(sys.argv[1]))
    except PlatformError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    try:
        asyncio.run(run(settings))
    except OSError as error:
        print(f"error: the front cannot listen at ports {settings.port} and {settings.metrics_port}: {error}\n  -> end who has them", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
