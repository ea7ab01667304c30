"""How long changes take: a pod, an edit of the weights, an update that has nothing to do."""

import time

from loadtests.engine import Load
from loadtests.plan import Plan
from tools.bench.results import Figure, figures_of
from tools.bench.site import Site
from tools.cluster.kubectl import has_condition
from tools.errors import ToolError

ROUNDS = 4
EDIT_RPS = 50.0
EDIT_SECONDS_MAX = 120.0
SETTLE_SECONDS = 5.0
POD_SECONDS_MAX = 180.0
# How exactly a pod's becoming ready is seen.
POLL_SECONDS = 0.1


def second_up(site: Site) -> tuple[Figure, ...]:
    """An update without a change. Raises ToolError when there is one after all."""
    rounds = []
    for _ in range(ROUNDS):
        result, seconds = site.up()
        if result.changes:
            raise ToolError(f"an update without an edit changed {result.changes}", "report this: an object is not described as the cluster keeps it")
        rounds.append({"second `pulumi up`, no change": seconds})
    return figures_of(rounds, "s")


def new_split(site: Site, port: int) -> tuple[Figure, ...]:
    """From the start of `pulumi up` until the last answer of the old version, all traffic moving from one version to the other and back."""
    rounds = []
    site.up(weight=0)
    for number in range(ROUNDS):
        old, weight = ("1", 100) if number % 2 == 0 else ("2", 0)
        with Load(Plan(rate_rps=EDIT_RPS, duration_seconds=EDIT_SECONDS_MAX), [site.http("gateway", port)]) as load:
            time.sleep(SETTLE_SECONDS)
            began = load.mark("edit")
            _, seconds = site.up(weight=weight)
            returned = time.monotonic()
            time.sleep(SETTLE_SECONDS)
        report = load.report().raise_if_invalid()
        if report.failures:
            raise ToolError(f"requests failed during the edit\n{report}", "see make status")
        last_old = max(sample.sent for sample in report.samples if sample.answer.version == old)
        rounds.append(
            {
                "edit of a weight: `pulumi up`": seconds,
                "edit of a weight: set, `pulumi up`, until the new split is in force": last_old - began,
                "edit of a weight: new split in force after `pulumi up` returned (below 0: before)": last_old - returned,
            }
        )
    return figures_of(rounds, "s")


def pod_start(site: Site) -> tuple[Figure, ...]:
    """From a pod's creation until it answers, and until it is ready, the image being on the node: the successor of a deleted pod of version 2."""
    rounds = []
    for _ in range(ROUNDS):
        before = {pod["metadata"]["uid"] for pod in site.pods(2)}
        names = [pod["metadata"]["name"] for pod in site.pods(2)]
        site.kubectl.run("delete", "pod", *names, "--namespace", site.identity.namespace, "--wait=false")
        answered, ready = start_times(site, before)
        rounds.append({"pod created to first answer": answered, "pod created to ready": ready})
    return figures_of(rounds, "s")


def start_times(site: Site, before: set[str]) -> tuple[float, float]:
    """Seconds from the first sight of a pod that is not among `before` until it gives a right answer, and until it is ready."""
    deadline, seen, answered = time.monotonic() + POD_SECONDS_MAX, None, None
    while time.monotonic() < deadline:
        fresh = [pod for pod in site.pods(2) if pod["metadata"]["uid"] not in before]
        if fresh and seen is None:
            seen = time.monotonic()
        if seen is not None and answered is None and any(site.answers(pod["metadata"]["name"]) for pod in fresh):
            answered = time.monotonic() - seen
        if seen is not None and answered is not None and any(has_condition(pod, "Ready") for pod in fresh):
            return answered, time.monotonic() - seen
        time.sleep(POLL_SECONDS)
    raise ToolError(f"no pod of version 2 became ready within {POD_SECONDS_MAX:g} s", "kubectl -n inference describe pod")
