"""One line that says what runs, how far it is and for how long."""

import sys
import time
from types import TracebackType
from typing import Self, TextIO

LOG_EVERY_SECONDS = 15.0
REDRAW_EVERY_SECONDS = 0.2
LINE_COLUMNS = 110


class Progress:
    """`what: 120 of 300 packages, 2m05s`: redrawn in place on a terminal, a plain line every 15 s in a log. Leaving the block writes the last state."""

    def __init__(self, what: str, *, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._started = time.monotonic()
        self._shown = self._started
        self._state = ""

    def __enter__(self) -> Self:
        self._write(final=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self._state = "done"
        self._write(final=True)

    def update(self, state: str) -> None:
        self._state = state
        now = time.monotonic()
        if now - self._shown >= (REDRAW_EVERY_SECONDS if self._terminal else LOG_EVERY_SECONDS):
            self._shown = now
            self._write(final=False)

    def _write(self, *, final: bool) -> None:
        state = f"{self._state}, " if self._state else ""
        line = f"{self._what}: {state}{elapsed(time.monotonic() - self._started)}"[:LINE_COLUMNS]
        end = "\n" if final or not self._terminal else ""
        self._stream.write(f"\r\x1b[2K{line}{end}" if self._terminal else f"{line}{end}")
        self._stream.flush()


def elapsed(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
