"""When requests leave: decided before the first one does, and by nothing that happens later."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from loadtests.errors import LoadError

# Bounds of one run. An hour at 5,000 requests/s is far beyond what one Python process sends, so a larger plan is a slip of units.
RATE_MAX_RPS = 5_000
DURATION_MAX_SECONDS = 3_600
SAMPLES_MAX = 2_000_000


class Arrivals(StrEnum):
    """Gaps between planned times: all alike, or exponential as of many independent callers."""

    CONSTANT = "constant"
    POISSON = "poisson"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An open-loop run. It ends by itself after `duration_seconds`, or earlier when it is stopped.

    `max_in_flight` bounds memory and sockets while nothing answers: what exceeds it is recorded as not sent and makes the run invalid.
    `lag_limit_seconds` is how late the generator's 99th percentile may be before its figures say more about itself than about the service.
    """

    rate_rps: float
    duration_seconds: float
    arrivals: Arrivals = Arrivals.CONSTANT
    seed: int = 0
    timeout_seconds: float = 15.0
    max_in_flight: int = 4_000
    lag_limit_seconds: float = 0.1

    def __post_init__(self) -> None:
        hint = "correct the load plan"
        if not 0 < self.rate_rps <= RATE_MAX_RPS:
            raise LoadError(f"rate_rps {self.rate_rps} is outside 0 to {RATE_MAX_RPS}", hint=hint)
        if not 0 < self.duration_seconds <= DURATION_MAX_SECONDS:
            raise LoadError(f"duration_seconds {self.duration_seconds} is outside 0 to {DURATION_MAX_SECONDS}", hint=hint)
        if self.rate_rps * self.duration_seconds > SAMPLES_MAX:
            raise LoadError(f"{self.rate_rps} requests/s for {self.duration_seconds} s is more than {SAMPLES_MAX} requests", hint=hint)
        for field in ("timeout_seconds", "max_in_flight", "lag_limit_seconds"):
            if not getattr(self, field) > 0:
                raise LoadError(f"{field} {getattr(self, field)} is not above 0", hint=hint)

    def offsets(self) -> Iterator[float]:
        """Planned times in seconds after the start, ascending, all below the duration. The same plan gives the same times."""
        if self.arrivals is Arrivals.CONSTANT:
            yield from (index / self.rate_rps for index in range(round(self.rate_rps * self.duration_seconds)))
            return
        generator = random.Random(self.seed)  # noqa: S311 - a reproducible schedule, no secret
        offset = generator.expovariate(self.rate_rps)
        while offset < self.duration_seconds:
            yield offset
            offset += generator.expovariate(self.rate_rps)
