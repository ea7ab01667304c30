"""When a model's process may have been silent for so long that the server gave its request up."""

import builtins
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tools.paths import REPO


@pytest.fixture
def stub_guard() -> ModuleType:
    """The module as Python imports it in a process that is none of a model: it does nothing."""
    spec = importlib.util.spec_from_file_location("stub_guard", REPO / "serving" / "image" / "stub_guard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    build = builtins.__build_class__
    spec.loader.exec_module(module)
    assert builtins.__build_class__ is build
    return module


@pytest.fixture
def silence(stub_guard: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """What the watch says after so many seconds with so many signs of life."""
    now, beats = [1000.0], [7]

    def pass_time(seconds: float, signs: int, *, suspended: bool = False) -> float:
        now[0] += seconds
        beats[0] += signs
        write()
        monkeypatch.setattr(stub_guard.time, "monotonic", lambda: 1000.0 if suspended else now[0])
        monkeypatch.setattr(stub_guard.time, "time", lambda: now[0])
        return float(watch.silence())

    def write() -> None:
        (tmp_path / "status").write_text(f"Name:\tstub\nvoluntary_ctxt_switches:\t{beats[0]}\nnonvoluntary_ctxt_switches:\t99\n")

    write()
    monkeypatch.setattr(stub_guard.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(stub_guard.time, "time", lambda: now[0])
    watch = stub_guard.Watch(tmp_path)
    return pass_time


def test_a_process_that_gives_its_signs_is_well_however_long_nobody_looked(silence: Callable[..., float], stub_guard: ModuleType) -> None:
    looks = [(0.05, 0), (0.25, 1), (0.3, 1), (30.0, 100), (0.5, 1)]
    assert all(silence(*look) < stub_guard.LIMIT for look in looks)


@pytest.mark.parametrize(("seconds", "signs"), [(1.0, 0), (1.0, 1), (4.0, 2), (31.0, 100)])
def test_a_second_without_a_sign_is_seen_before_and_after_the_next_one(
    silence: Callable[..., float], stub_guard: ModuleType, seconds: float, signs: int
) -> None:
    """The server gives a request up after one second."""
    assert silence(seconds, signs) > stub_guard.LIMIT


def test_a_suspended_machine_counts_although_its_steady_clock_stood_still(silence: Callable[..., float], stub_guard: ModuleType) -> None:
    assert silence(5, 1, suspended=True) > stub_guard.LIMIT


def test_an_execution_is_checked_before_and_after(stub_guard: ModuleType) -> None:
    order: list[object] = []

    class Guard:
        def check(self) -> None:
            order.append("check")

    def execute(_: object, requests: object) -> list[str]:
        order.append(requests)
        return ["answer"]

    run = stub_guard.guarded(execute, Guard())
    assert run(None, "requests") == ["answer"]
    assert order == ["check", "requests", "check"]


LISTENS = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('listens', flush=True); time.sleep(30)"
# As the first process of a container does, it loses the signals that come before it listens.
DEAF_AT_FIRST = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); input(); {LISTENS}"


def python(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def stub(stub_guard: ModuleType, server: int) -> int:
    """Ends `server` from a process that is gone right afterwards; the exit code of that process."""
    code = f"import sys; sys.path.insert(0, {str(Path(stub_guard.__file__ or '').parent)!r}); import stub_guard, os; stub_guard.end({server}); os._exit(1)"
    return subprocess.run([sys.executable, "-c", code], timeout=20, check=False).returncode


def test_a_server_that_listens_is_told_at_once(stub_guard: ModuleType) -> None:
    with python(LISTENS) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "listens\n"
        assert stub(stub_guard, server.pid) == 1
        assert server.wait(timeout=20) == 7


def test_a_server_that_does_not_listen_yet_is_told_when_it_does_though_the_stub_is_gone(stub_guard: ModuleType) -> None:
    with python(DEAF_AT_FIRST) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        assert server.stdout.readline() == "deaf\n"
        assert stub(stub_guard, server.pid) == 1
        assert server.poll() is None
        server.stdin.write("\n")
        server.stdin.flush()
        assert server.wait(timeout=20) == 7


def test_a_server_that_is_gone_needs_not_be_told(stub_guard: ModuleType) -> None:
    with python("pass") as server:
        server.wait(timeout=20)
    assert stub(stub_guard, server.pid) == 1
