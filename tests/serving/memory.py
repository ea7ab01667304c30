"""Memory of a running server, as this machine's kernel counts it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.triton_process import TritonProcess


@contextmanager
def peak(look: Callable[[], float]) -> Iterator[list[float]]:
    """What `look` saw meanwhile."""
    seen, done = [look()], threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            seen.append(look())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def resident_mib(server: TritonProcess) -> float:
    """Memory of the server and its models, shared memory once."""
    processes = [server.pid]
    for process in processes:
        processes += map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
    return sum(map(proportional_mib, processes))


def proportional_mib(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
