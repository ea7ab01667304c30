"""What the gateway adds to a request: both ways in one run, in turn."""

from collections.abc import Sequence

from loadtests.engine import Load
from loadtests.plan import Plan
from loadtests.report import Report
from loadtests.target import Target
from tools.bench.results import Figure, figures_of
from tools.errors import ToolError

# Rates to try, highest first: the first one that the machine holds is measured.
RATES_RPS = (500.0, 350.0, 250.0, 180.0, 120.0, 80.0, 50.0, 25.0)
PROBE_SECONDS = 6.0
# Beyond this median the server queues, and a ratio would compare queues.
HELD_MEDIAN_MS = 25.0
ROUNDS = 5
ROUND_SECONDS = 12.0
# Connections open and caches fill during the first of them.
WARM_UP_SECONDS = 2.0
LAG_LIMIT_SECONDS = 0.02


def run(targets: Sequence[Target], rate: float, seconds: float) -> Report:
    """The requests after the warm-up."""
    plan = Plan(rate_rps=rate, duration_seconds=WARM_UP_SECONDS + seconds, lag_limit_seconds=LAG_LIMIT_SECONDS)
    with Load(plan, targets) as load:
        report = load.finish()
    return report.between(report.window[0] + WARM_UP_SECONDS, report.window[1])


def held_rate(targets: Sequence[Target]) -> float:
    """The highest of RATES_RPS at which nothing fails, nothing queues and the generator is on time. Raises ToolError if there is none."""
    for rate in RATES_RPS:
        report = run(targets, rate, PROBE_SECONDS)
        if not report.failures and not report.invalid and report.service_ms(50) <= HELD_MEDIAN_MS:
            return rate
    raise ToolError(f"the machine does not hold {RATES_RPS[-1]:g} requests/s\n{report}", "end other programs, and see make status")


def compare(gateway: Target, direct: Target) -> tuple[float, tuple[Figure, ...]]:
    """The rate that the machine holds over both ways together, and the figures at that rate."""
    rate = held_rate((gateway, direct))
    return rate, measure(gateway, direct, rate)


def measure(gateway: Target, direct: Target, rate: float) -> tuple[Figure, ...]:
    """Latency both ways in ms, and their ratio, as figures over ROUNDS rounds. Raises ToolError for a failed request, LoadError for an invalid run."""
    times, ratios = [], []
    for _ in range(ROUNDS):
        report = run((gateway, direct), rate, ROUND_SECONDS).raise_if_invalid()
        if report.failures:
            raise ToolError(f"requests failed while measuring\n{report}", "see make status")
        through, past = report.target(gateway.name), report.target(direct.name)
        times.append({f"{part.samples[0].target}, p{percent}": part.service_ms(percent) for part in (through, past) for percent in (50, 99)})
        ratios.append({f"{gateway.name} / {direct.name}, p{percent}": through.service_ms(percent) / past.service_ms(percent) for percent in (50, 99)})
    return (*figures_of(ratios, ""), *figures_of(times, "ms"))
