"""The one process that keeps a cluster's processes running: `python -m tools.cluster.supervisor <cluster directory>`.

It follows the plan file: SIGHUP makes it read the plan again, SIGTERM stops everything in reverse order. With nodes it is the first process of a process
namespace of its own, so the kernel ends everything below it, containers included, however the supervisor ends; without root its children ask
for the parent's death signal instead.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import cgroups, kernel, logs
from tools.cluster.identity import ProcessIdentity
from tools.cluster.node_namespace import NodeNamespaces, open_node
from tools.cluster.processes import Plan, ProcessSpec
from tools.cluster.spec import Layout
from tools.cluster.waiting import accepts
from tools.files import write_atomically

SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TICK_SECONDS = 0.1
FIRST_BACKOFF_SECONDS = 0.2
LONGEST_BACKOFF_SECONDS = 5.0
# A process that ran this long was fine: its next failure is a new one.
STEADY_SECONDS = 10.0
STOP_SECONDS = 5.0
# What containers get between SIGTERM and the end: this is a machine going down, not a drain.
CONTAINERS_STOP_SECONDS = 2.0


def next_backoff(current: float, ran_seconds: float) -> float:
    """Seconds to wait before the next start of a process that ran for `ran_seconds` after a wait of `current`."""
    if ran_seconds >= STEADY_SECONDS or current == 0:
        return FIRST_BACKOFF_SECONDS
    return min(current * 2, LONGEST_BACKOFF_SECONDS)


@dataclass
class Child:
    """A process of the plan and how it fares."""

    spec: ProcessSpec
    pid: int = 0
    started: float = 0.0
    starts: int = 0
    backoff: float = 0.0
    not_before: float = 0.0

    def state(self) -> dict[str, object]:
        return {"pid": self.pid, "state": "running" if self.pid else "waiting", "restarts": max(self.starts - 1, 0)}


class Supervisor:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.plan = Plan.from_json(layout.plan.read_text())
        self.children = {spec.name: Child(spec) for spec in self.plan.processes}
        self.nodes: dict[int, NodeNamespaces] = {}
        self.reported = ""

    def run(self) -> None:
        """Runs until SIGTERM or SIGINT."""
        next_log_check = 0.0
        while True:
            self._start_due()
            self._report()
            if time.monotonic() >= next_log_check:
                logs.bound(self.layout.logs)
                next_log_check = time.monotonic() + logs.CHECK_SECONDS
            received = signal.sigtimedwait(SIGNALS, TICK_SECONDS)
            self._reap()
            if received is not None and received.si_signo in {signal.SIGTERM, signal.SIGINT}:
                self._stop_all()
                return
            if received is not None and received.si_signo == signal.SIGHUP:
                self._follow(Plan.from_json(self.layout.plan.read_text()))

    def _follow(self, plan: Plan) -> None:
        """Takes up a new plan: what changed or is no longer in it stops, what is new starts."""
        wanted = {spec.name: spec for spec in plan.processes}
        for child in reversed(list(self.children.values())):
            if wanted.get(child.spec.name) != child.spec:
                self._stop(child)
        self.plan = plan
        self.children = {
            name: self.children[name] if name in self.children and self.children[name].spec == spec else Child(spec) for name, spec in wanted.items()
        }

    def _start_due(self) -> None:
        now = time.monotonic()
        due = [child for child in self.children.values() if child.pid == 0 and now >= child.not_before]
        usable = {address for address in {each for child in due for each in child.spec.after} if accepts(address)}
        for child in due:
            if usable.issuperset(child.spec.after):
                child.pid, child.started, child.starts = self._spawn(child.spec), now, child.starts + 1

    def _spawn(self, spec: ProcessSpec) -> int:
        if spec.node and spec.node not in self.nodes:
            self.nodes[spec.node] = open_node(self.plan.name, self.layout, spec.node)
        pid = os.fork()
        if pid:
            return pid
        try:
            logs.redirect(self.layout.logs / f"{spec.name}.log")
            if os.getppid() != 1:
                kernel.die_with_parent()
            if spec.node:
                self.nodes[spec.node].enter()
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            environment = {"PATH": spec.path or os.defpath, "HOME": os.environ.get("HOME", "/")}
            os.execve(spec.argv[0], spec.argv, environment)  # noqa: S606
        except OSError as error:
            os.write(2, f"cannot start {spec.argv[0]}: {error}\n".encode())
        finally:
            os._exit(127)

    def _reap(self) -> None:
        """Collects ended children, and the orphans that a namespace's first process inherits."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                for child in self.children.values():
                    if child.pid == ended:
                        now = time.monotonic()
                        child.backoff = next_backoff(child.backoff, now - child.started)
                        child.pid, child.not_before = 0, now + child.backoff

    def _stop(self, child: Child) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if child.pid:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, number)
            self._reap_until(lambda: child.pid == 0, STOP_SECONDS)

    def _reap_until(self, done: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not done() and time.monotonic() < deadline:
            signal.sigtimedwait((signal.SIGCHLD,), TICK_SECONDS)
            self._reap()

    def _stop_containers(self, node: int) -> None:
        cgroups.signal_node(self.plan.name, node, signal.SIGTERM)
        self._reap_until(lambda: not cgroups.node_processes(self.plan.name, node), CONTAINERS_STOP_SECONDS)

    def _stop_all(self) -> None:
        for child in reversed(list(self.children.values())):
            if child.spec.name.startswith("containerd-"):
                self._stop_containers(child.spec.node)
            self._stop(child)
            self._report()

    def _report(self) -> None:
        """Writes the states for `status`, when they changed."""
        text = json.dumps({name: child.state() for name, child in self.children.items()}, indent=1)
        if text != self.reported:
            write_atomically(self.layout.process_states, text)
            self.reported = text


def _become_daemon(plan: Plan, layout: Layout) -> None:
    """Forks once, into a process namespace of its own when there are nodes; the parent records the child and ends."""
    if plan.nodes:
        cgroups.join(plan.name)
        kernel.unshare(kernel.CLONE_NEWPID)
    pid = os.fork()
    if pid:
        identity = ProcessIdentity.of(pid)
        if identity is not None:
            identity.write(layout.supervisor)
        os._exit(0)
    if plan.nodes:
        kernel.unshare(kernel.CLONE_NEWNS)
        # Slave: a network namespace made or deleted on the host comes and goes here as well; nothing of ours gets out.
        kernel.mount("none", Path("/"), flags=kernel.MS_REC | kernel.MS_SLAVE)
        kernel.mount("proc", Path("/proc"), "proc")


def main(root: str) -> None:
    layout = Layout(Path(root))
    plan = Plan.from_json(layout.plan.read_text())
    # Handlers make the signals reach the first process of a namespace, which the kernel shields from default actions.
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    logs.redirect(layout.logs / "supervisor.log")
    _become_daemon(plan, layout)
    Supervisor(layout).run()


if __name__ == "__main__":
    main(sys.argv[1])
