"""Progress of a transfer, as lines of a log."""

import time
from collections.abc import Callable

LINE_SECONDS = 5.0
KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


def readable(size: float) -> str:
    """A size for people."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:.0f} bytes"


class Progress:
    """Counts the bytes of one file from `start` on; says bytes and rate every five seconds and at the end."""

    def __init__(self, what: str, total: int, start: int, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.done = start
        self._what, self._total, self._start, self._say, self._clock = what, total, start, say, clock
        self._began = self._said = clock()

    def add(self, count: int) -> None:
        self.done += count
        if self._clock() - self._said >= LINE_SECONDS:
            self._said = self._clock()
            self.end()

    def end(self) -> None:
        """One line: where it stands."""
        resumed = f", resumed at {readable(self._start)}" if self._start else ""
        rate = (self.done - self._start) / max(self._clock() - self._began, 0.001)
        self._say(f"{self._what}: {readable(self.done)} of {readable(self._total)}, {readable(rate)}/s{resumed}")
