"""Arithmetic on samples: exact, from every value."""

import math
from collections.abc import Sequence

PERCENT = 100


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` % of the values do not exceed (nearest rank): one of the values, so never above the maximum."""
    if not values:
        raise ValueError("no percentile of nothing")
    if not 0 < percent <= PERCENT:
        raise ValueError(f"percentile {percent} is outside 0 to {PERCENT}")
    return sorted(values)[math.ceil(len(values) * percent / PERCENT) - 1]


def binomial_band(count: int, share: float, deviations: float = 4.0) -> tuple[float, float]:
    """Lowest and highest number of hits among `count` independent draws that lies within `deviations` standard deviations; exact for a share of 0 or 1."""
    if not 0 <= share <= 1:
        raise ValueError(f"share {share} is outside 0 to 1")
    mean, spread = count * share, deviations * math.sqrt(count * share * (1 - share))
    return mean - spread, mean + spread
