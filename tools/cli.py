"""What the commands behind `make` share: errors are text for people, never a stack trace."""

import time
from collections.abc import Callable
from typing import TypeVar

from components.errors import INTERRUPTED, run_main

__all__ = ["INTERRUPTED", "Steps", "run_main"]

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
