"""The verdict on a run: counts, failures with reasons, exact percentiles, and whether the run can be trusted at all."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from loadtests.errors import LoadError
from loadtests.plan import Plan
from loadtests.samples import ErrorKind, Mark, Sample
from loadtests.statistics import PERCENT, percentile

# Below this share of the plan a run measured another load than it claims.
ACHIEVED_MIN = 0.95
MS = 1_000


@dataclass(frozen=True)
class Report:
    """Samples ordered by planned time. `window` is the (start, end) in which requests were planned, in monotonic seconds.

    `phase`, `target`, `between` give the same view of a part. Every percentile counts failed requests too.
    """

    plan: Plan
    samples: tuple[Sample, ...]
    marks: tuple[Mark, ...]
    window: tuple[float, float]

    def phase(self, name: str) -> "Report":
        """The requests planned while `name` was the latest mark."""
        marks = sorted(self.marks, key=lambda mark: mark.at)
        spans = [
            (mark.at, following.at if following else self.window[1])
            for mark, following in zip(marks, [*marks[1:], None], strict=True)
            if mark.name == name
        ]
        if len(spans) != 1:
            raise LoadError(f"phase {name!r} was marked {len(spans)} times", hint=f"marks of this run: {[mark.name for mark in marks]}")
        return self.between(*spans[0])

    def between(self, start: float, end: float) -> "Report":
        """The requests planned from `start` to before `end`."""
        kept = tuple(sample for sample in self.samples if start <= sample.planned < end)
        return replace(self, samples=kept, window=(max(start, self.window[0]), min(end, self.window[1])))

    def target(self, name: str) -> "Report":
        return self._where(lambda sample: sample.target == name)

    def protocol(self, name: str) -> "Report":
        return self._where(lambda sample: sample.protocol == name)

    def _where(self, keep: Callable[[Sample], bool]) -> "Report":
        return replace(self, samples=tuple(sample for sample in self.samples if keep(sample)))

    @property
    def count(self) -> int:
        return len(self.samples)

    @cached_property
    def failures(self) -> tuple[Sample, ...]:
        return tuple(sample for sample in self.samples if sample.failed)

    @cached_property
    def versions(self) -> Counter[str]:
        """Answers without an error per model version named in them."""
        return Counter(sample.answer.version for sample in self.samples if not sample.failed)

    def latency_ms(self, percent: float) -> float:
        """Percentile of the time from the planned moment to the complete answer."""
        return percentile([sample.latency for sample in self.samples], percent) * MS

    def service_ms(self, percent: float) -> float:
        """Percentile of the time from the real departure; for ratios between two targets of one run, not for objectives."""
        return percentile([sample.service_time for sample in self.samples], percent) * MS

    def lag_ms(self, percent: float) -> float:
        """Percentile of how late the generator itself was."""
        return percentile([sample.lag for sample in self.samples], percent) * MS

    @cached_property
    def achieved(self) -> float:
        """Share of the planned requests that left before the window closed (plus the allowed lag)."""
        deadline = self.window[1] + self.plan.lag_limit_seconds
        on_time = sum(sample.sent <= deadline and sample.answer.error is not ErrorKind.NOT_SENT for sample in self.samples)
        return on_time / self.count if self.samples else 0.0

    @cached_property
    def invalid(self) -> tuple[str, ...]:
        """Why the figures must not be used; empty for a valid run."""
        if not self.samples:
            return ("no request was planned",)
        reasons = []
        if self.achieved < ACHIEVED_MIN:
            reasons.append(f"only {self.achieved:.1%} of the planned requests left in time (at least {ACHIEVED_MIN:.0%})")
        limit = self.plan.lag_limit_seconds * MS
        if self.lag_ms(99) > limit:
            reasons.append(f"the generator was late: 99th percentile {self.lag_ms(99):.1f} ms (at most {limit:.0f} ms)")
        return tuple(reasons)

    def raise_if_invalid(self) -> "Report":
        """Return the report itself, or raise LoadError: an invalid run is never a pass."""
        if self.invalid:
            raise LoadError(f"invalid load run: {'; '.join(self.invalid)}", hint=f"lower the rate or free the machine\n{self}")
        return self

    def __str__(self) -> str:
        if not self.samples:
            return "no requests"
        reasons = Counter(f"{sample.answer.error} {sample.answer.detail}".strip() for sample in self.failures)
        latency = ", ".join(f"p{percent:g} {self.latency_ms(percent):.2f} ms" for percent in (50, 90, 99, 99.9, PERCENT))
        lines = [
            f"{self.count} requests in {self.window[1] - self.window[0]:.1f} s, {len(self.failures)} failed",
            f"versions: {dict(sorted(self.versions.items()))}",
            f"latency: {latency}; generator's lag: p99 {self.lag_ms(99):.2f} ms",
            *(f"failed {number} x: {reason}" for reason, number in reasons.most_common(10)),
            *(f"invalid: {reason}" for reason in self.invalid),
        ]
        return "\n".join(lines)
