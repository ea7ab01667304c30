"""What the commands behind `make` share: errors are text for people, never a stack trace."""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

from components.errors import PlatformError

INTERRUPTED = 130
Result = TypeVar("Result")


class Steps:
    """Says what is done and how long it took: `[2/5] images ... 3 s`."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.number = 0

    def run(self, what: str, work: Callable[[], Result]) -> Result:
        self.number += 1
        print(f"[{self.number}/{self.total}] {what}", flush=True)
        began = time.monotonic()
        result = work()
        print(f"[{self.number}/{self.total}] {what}: {time.monotonic() - began:.0f} s", flush=True)
        return result


def run_main(work: Callable[[], int]) -> int:
    """Exit code of a command: 1 with a sentence and the way out for an error a person can act on, 130 for Ctrl-C."""
    try:
        return work()
    except PlatformError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
