"""`make up`, interrupted anywhere and repeated, on a cluster of its own beside the running platform."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.inventory import inventory, recorded
from tests.e2e.kube import Kube
from tests.e2e.waits import wait_for
from tools.cluster import delete
from tools.cluster.spec import Layout
from tools.cluster.state import State
from tools.environment import local_stack, variables
from tools.paths import REPO
from tools.target import local_target
from tools.toolchain import ensure

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CLUSTER = "e2e-up"
UP_SECONDS = 240
# The totals, with which Pulumi's step ends; any other operation would stand beside the unchanged.
TOTALS = re.compile(r"^ +(?P<counts>\d+ [a-z-]+(?:, \d+ [a-z-]+)*)\n\[\d/\d\] stack local", re.MULTILINE)
UNCHANGED = re.compile(r"\d+ unchanged")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What the two last runs of `make up` said, after three that were interrupted; the cluster is gone afterwards."""
    file = tmp_path_factory.mktemp("make-up") / "output"
    delete(CLUSTER, keep_images=False)
    try:
        # While the node joins its control plane, while it takes the images, while Pulumi makes objects, many at once.
        interrupt(file, signal.SIGKILL, lambda text: "API server" in text)
        interrupt(file, signal.SIGINT, lambda text: f"node {CLUSTER}-1 ready" in text)
        interrupt(file, signal.SIGKILL, lambda text: "CustomResourceDefinition istio-base" in text)
        yield [make("up", file), make("up", file)]
    finally:
        make("down", file)
        # The images too, which `make down` keeps for the next time.
        delete(CLUSTER, keep_images=False)


def command(goal: str) -> list[str]:
    # A run in the background hands SIGINT to its children as ignored; a person's terminal does not.
    return ["env", "--default-signal=INT", "make", goal, f"CLUSTER={CLUSTER}"]


def start(goal: str, file: Path) -> subprocess.Popen[bytes]:
    with file.open("wb") as output:
        return subprocess.Popen(command(goal), cwd=REPO, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)


def make(goal: str, file: Path) -> str:
    """Run to its end, which must be a good one, and return what it said."""
    running = start(goal, file)
    try:
        code = running.wait(UP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        code = None
    said = file.read_text(encoding="utf-8")
    assert code == 0, f"`make {goal}` ended with {code} (None: not within {UP_SECONDS} s)\n{said}"
    return said


def interrupt(file: Path, how: signal.Signals, due: Callable[[str], bool]) -> None:
    """Start `make up` and send it the signal, as a terminal or an impatient person would: to the process group."""
    running = start("up", file)
    wait_for("the moment to interrupt", lambda: file.read_text(encoding="utf-8"), due, seconds=UP_SECONDS, every=0.05)
    os.killpg(running.pid, how)
    assert running.wait(UP_SECONDS) != 0, f"`make up` was over before it could be interrupted\n{file.read_text(encoding='utf-8')}"


def test_an_interrupted_make_up_is_completed_by_the_next_one(outputs: list[str]) -> None:
    for output in outputs:
        assert "prediction" in output


def test_a_second_make_up_changes_nothing(outputs: list[str]) -> None:
    totals = TOTALS.search(outputs[-1])
    assert totals is not None, outputs[-1]
    assert UNCHANGED.fullmatch(totals["counts"]), outputs[-1]


@pytest.mark.usefixtures("outputs")
def test_nothing_is_there_twice_or_without_pulumi_knowing_it() -> None:
    state = State.read(Layout.of(CLUSTER))
    assert state is not None
    toolchain = ensure()
    stack = local_stack(variables(local_target(CLUSTER), toolchain), toolchain)
    kube = Kube(state.cluster.kubeconfig, state.cluster.context)
    try:
        there = inventory(kube)
        assert there == recorded(stack)
        assert sorted(name for kind, name in there if kind == "deployments") == ["magika-v1", "magika-v2"]
    finally:
        kube.close()
