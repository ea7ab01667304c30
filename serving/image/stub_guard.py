"""Ends a server that may have given up a request which a Python model still answers: its next request would get that answer.

Triton 2.51 (python_backend r24.10, StubLauncher::ReceiveMessageFromStub) asks once a second whether a thread of the model's process has shown that it
runs, which that thread does every 300 ms. When the whole process stood still (a paused machine, one without a free core), the server answers
500 "not healthy", and then takes whatever the process sends next for the answer to the next request, and so on for every request after it.

Python imports this at its start (a path file of the image); it does something in the processes of models alone. It watches the same thread and, before
and after each `execute`, ends process and server where it did not run for so long that the server may have given up. The pod starts them anew.
"""

import builtins
import contextlib
import functools
import inspect
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

STUB = "triton_python_backend_stub"
# Position of the server's process in the arguments of a stub (python_backend r24.10 src/stub_launcher.cc).
SERVER_ARGUMENT = 5
MODEL_CLASS = "TritonPythonModel"
# The sign of life is given this often, in seconds.
BEAT = 0.3
# The server gives up after a second without; a sign is seen up to LOOK, on a busy machine more, after it was given.
LIMIT = 0.9
LOOK = 0.05


class Watch:
    """How long the thread that gives signs of life may have given none, in seconds; it sleeps between two of them, which the kernel counts."""

    def __init__(self, task: Path) -> None:
        self._status = task / "status"
        self._seen = (self._beats(), time.monotonic(), time.time())

    def silence(self) -> float:
        """The longest that fits: a model may have kept this interpreter from looking, so that several signs have come since the last look."""
        beats, steady, wall = self._beats(), time.monotonic(), time.time()
        seen, then, then_wall = self._seen
        if beats != seen:
            self._seen = (beats, steady, wall)
        # The server waits by the wall clock, and a machine that is suspended may hold the other one.
        return max(steady - then, wall - then_wall) - BEAT * max(beats - seen - 1, 0)

    def _beats(self) -> int:
        lines = self._status.read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


class Guard:
    """Watches from its own thread and whenever asked; `server` is the process to end."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._watch: Watch | None = None
        known = _tasks()
        self._thread = threading.Thread(target=self._run, args=(known,), name="stub-guard", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Return when every answer of this process still is for the request that the server thinks it is for; else do not return."""
        if self._watch is not None and (silence := self._watch.silence()) > LIMIT:
            sys.stderr.write(f"stub-guard: this model stood still for {silence:.1f} s; the server may have given up its request, and is ended\n")
            sys.stderr.flush()
            end(self._server)
            os._exit(1)

    def _run(self, known: set[int]) -> None:
        # The first thread that comes is the one that gives the signs of life: the stub starts it before it imports the model.
        while not (new := _tasks() - known - {threading.get_native_id()}):
            time.sleep(0.001)
        self._watch = Watch(Path(f"/proc/self/task/{min(new)}"))
        with contextlib.suppress(FileNotFoundError):
            # Until the thread ends, which the stub does when its model is unloaded.
            while True:
                self.check()
                time.sleep(LOOK)


def end(server: int) -> None:
    """Tell `server` to end, by a process of its own where it cannot hear that yet: this one may not live on to tell it.

    Triton listens to SIGTERM once all its models are loaded; until then it is lost on it, since nothing ends the first process of a container unless
    it listens. A server that does not get so far, because it lost this model, ends by itself.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        if not hears_sigterm(server) and os.fork() > 0:
            return
        while not hears_sigterm(server):
            time.sleep(LOOK)
        os.kill(server, signal.SIGTERM)


def hears_sigterm(process: int) -> bool:
    """Whether `process` handles SIGTERM. Raises FileNotFoundError when it is gone."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    handled = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(handled >> (signal.SIGTERM - 1) & 1)


def guarded(execute: Any, guard: Guard) -> Any:
    """`execute` of a model that checks before and after."""
    if inspect.iscoroutinefunction(execute):

        @functools.wraps(execute)
        async def run(self: Any, requests: Any) -> Any:
            guard.check()
            answers = await execute(self, requests)
            guard.check()
            return answers

        return run

    @functools.wraps(execute)
    def call(self: Any, requests: Any) -> Any:
        guard.check()
        answers = execute(self, requests)
        guard.check()
        return answers

    return call


def install(arguments: list[str]) -> None:
    """Guard the model that this process is going to import; nothing in a process that is none of a model."""
    if not arguments[0].endswith(STUB):
        return
    guard, build = Guard(int(arguments[SERVER_ARGUMENT])), builtins.__build_class__

    def build_class(body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
        made = build(body, name, *bases, **keywords)
        if name == MODEL_CLASS and "execute" in vars(made):
            made.execute = guarded(made.execute, guard)
        return made

    builtins.__build_class__ = build_class  # type: ignore[assignment]  # narrower in typeshed


def _tasks() -> set[int]:
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


install(Path("/proc/self/cmdline").read_bytes().decode(errors="replace").split("\0"))
