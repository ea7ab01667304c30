"""The supervisor with small processes in place of Kubernetes: no root, no namespaces."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tools.cluster import lifecycle, logs
from tools.cluster.identity import ProcessIdentity
from tools.cluster.processes import Plan, ProcessSpec
from tools.cluster.spec import Layout
from tools.cluster.supervisor import FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS, STEADY_SECONDS, next_backoff
from tools.files import write_atomically

# Writes its name to `ended` when it is asked to end.
POLITE = """
import pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
pathlib.Path(sys.argv[1] + "." + sys.argv[2]).touch()
signal.sigwait({signal.SIGTERM})
with open(sys.argv[1], "a") as out: out.write(sys.argv[2] + "\\n")
"""
SECONDS = 20.0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)


class Running:
    """A supervisor in `root`."""

    def __init__(self, root: Path, *processes: ProcessSpec) -> None:
        self.layout = Layout(root)
        self.plan = Plan(name="t", root=str(root), nodes=0, processes=processes)
        write_atomically(self.layout.plan, self.plan.to_json())
        self.identity = lifecycle._spawn_supervisor(self.layout)

    def states(self) -> dict[str, dict[str, object]]:
        return dict(json.loads(self.layout.process_states.read_text())) if self.layout.process_states.exists() else {}

    def pid(self, name: str) -> int:
        until(lambda: self.states().get(name, {}).get("state") == "running")
        return int(str(self.states()[name]["pid"]))

    def stop(self) -> None:
        self.identity.signal(signal.SIGTERM)
        assert self.identity.wait(SECONDS)


def polite(root: Path, name: str, after: tuple[str, ...] = ()) -> ProcessSpec:
    return ProcessSpec(name=name, argv=(sys.executable, "-c", POLITE, str(root / "ended"), name), after=after)


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(*processes: ProcessSpec) -> Running:
        started.append(Running(tmp_path, *processes))
        return started[-1]

    yield begin
    for each in started:
        each.stop()


def test_a_killed_process_is_started_again(supervise: Callable[..., Running], tmp_path: Path) -> None:
    running = supervise(polite(tmp_path, "a"))
    first = running.pid("a")
    os.kill(first, signal.SIGKILL)
    until(lambda: running.states()["a"]["restarts"] == 1)
    assert running.pid("a") != first


def test_processes_end_in_reverse_order(supervise: Callable[..., Running], tmp_path: Path) -> None:
    running = supervise(polite(tmp_path, "a"), polite(tmp_path, "b"), polite(tmp_path, "c"))
    until(lambda: all((tmp_path / f"ended.{name}").exists() for name in "abc"))
    running.stop()
    assert (tmp_path / "ended").read_text().split() == ["c", "b", "a"]


def test_processes_do_not_outlive_a_killed_supervisor(supervise: Callable[..., Running], tmp_path: Path) -> None:
    running = supervise(polite(tmp_path, "a"))
    child = ProcessIdentity.of(running.pid("a"))
    assert child is not None
    running.identity.signal(signal.SIGKILL)
    assert child.wait(SECONDS)


def test_a_new_plan_touches_only_what_changed(supervise: Callable[..., Running], tmp_path: Path) -> None:
    running = supervise(polite(tmp_path, "a"), polite(tmp_path, "b"))
    kept, gone = running.pid("a"), running.pid("b")
    write_atomically(running.layout.plan, replace(running.plan, processes=(polite(tmp_path, "a"), polite(tmp_path, "c"))).to_json())
    running.identity.signal(signal.SIGHUP)
    until(lambda: "c" in running.states())
    assert running.pid("c") != gone
    assert running.pid("a") == kept
    assert ProcessIdentity.of(gone) is None


def test_a_process_waits_for_what_it_needs(supervise: Callable[..., Running], tmp_path: Path) -> None:
    running = supervise(polite(tmp_path, "a"), polite(tmp_path, "b", after=(f"unix:{tmp_path}/missing.sock",)))
    running.pid("a")
    assert running.states()["b"] == {"pid": 0, "state": "waiting", "restarts": 0}


def test_a_program_that_cannot_be_started_is_named_in_its_log(supervise: Callable[..., Running], tmp_path: Path) -> None:
    running = supervise(ProcessSpec(name="a", argv=("/nowhere/program",)))
    until(lambda: "cannot start /nowhere/program" in logs.tail(running.layout.logs / "a.log"))


def test_the_pause_before_a_restart_grows_to_a_limit_and_starts_afresh_after_a_good_run() -> None:
    pauses = [0.0]
    for _ in range(8):
        pauses.append(next_backoff(pauses[-1], 0.1))
    assert pauses[1:3] == [FIRST_BACKOFF_SECONDS, 2 * FIRST_BACKOFF_SECONDS]
    assert pauses[-1] == LONGEST_BACKOFF_SECONDS
    assert next_backoff(LONGEST_BACKOFF_SECONDS, STEADY_SECONDS) == FIRST_BACKOFF_SECONDS


def test_a_log_stays_within_bounds_while_its_process_keeps_writing(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    with file.open("a") as stream:
        stream.write("old" * 10)
        stream.flush()
        logs.bound(tmp_path, limit_bytes=20)
        stream.write("new")
        stream.flush()
    assert file.read_text() == "new"
    assert (tmp_path / "a.log.1").read_text() == "old" * 10
