"""How sure a share is that was counted on a sample."""

import math
from typing import Annotated

from pydantic import Field

from components.core.spec import Spec

# Two-sided 95 %.
DEVIATIONS = 1.959963984540054


class Share(Spec):
    """`hits` of `count` examples; `low` and `high` are the ends of the Wilson interval (95 %), which holds near 1 too, where the usual one does not."""

    hits: Annotated[int, Field(ge=0)]
    count: Annotated[int, Field(gt=0)]
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.hits / self.count

    @property
    def misses(self) -> int:
        return self.count - self.hits


def share(hits: int, count: int) -> Share:
    """E. B. Wilson, Probable inference, 1927: the ends are the roots of (hits/count - p)² = DEVIATIONS² p (1 - p) / count."""
    value, squared = hits / count, DEVIATIONS**2 / count
    middle = value + squared / 2
    reach = math.sqrt(squared * (value * (1 - value) + squared / 4))
    low, high = ((middle + side * reach) / (1 + squared) for side in (-1, 1))
    return Share(hits=hits, count=count, low=max(0.0, low), high=min(1.0, high))
