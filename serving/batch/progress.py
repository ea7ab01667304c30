"""How far a run is, as one line for people and one object for programs."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

MINUTE = 60


@dataclass
class Progress:
    """Counts of a run; `before` were answered by earlier ones."""

    total: int
    before: int
    clock: Callable[[], float] = time.monotonic
    answered: int = 0
    failed: int = 0
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def add(self, *, answered: int = 0, failed: int = 0) -> None:
        self.answered += answered
        self.failed += failed

    @property
    def done(self) -> int:
        return self.before + self.answered + self.failed

    @property
    def seconds(self) -> float:
        return self.clock() - self.began

    @property
    def rate(self) -> float:
        """Items per second of this run."""
        return (self.answered + self.failed) / self.seconds if self.seconds > 0 else 0.0

    def line(self) -> str:
        left = self.total - self.done
        end = "" if left == 0 else f", {duration(left / self.rate)} left" if self.rate > 0 else ", end unknown"
        return f"{self.done}/{self.total} ({self.done / max(self.total, 1):.0%}), {self.rate:.1f} items/s, {self.failed} failed{end}"

    def summary(self) -> dict[str, float]:
        return {
            "total": self.total,
            "before": self.before,
            "answered": self.answered,
            "failed": self.failed,
            "seconds": round(self.seconds, 3),
            "itemsPerSecond": round(self.rate, 3),
        }


def duration(seconds: float) -> str:
    """`1:02:03`, hours only where there are some."""
    minutes, rest = divmod(round(seconds), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
