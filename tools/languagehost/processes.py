"""Child processes of the host: ended with it, their output relayed as it comes."""

import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import IO, Literal

Stream = Literal["stdout", "stderr"]
GRACE_SECONDS = 2.0
CHUNK_BYTES = 8192


class Children:
    """The processes that run for the engine at the moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def start(self, make: Callable[[], "subprocess.Popen[bytes]"]) -> "subprocess.Popen[bytes]":
        """Start through `make`; a child that starts while the host is ending is ended at once."""
        with self._lock:
            child = make()
            self._running.add(child)
            if self._closed:
                child.terminate()
        return child

    def finished(self, child: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._running.discard(child)

    def terminate(self) -> None:
        """End all of them: a friendly signal first, the other after two seconds."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            child.send_signal(signal.SIGTERM)
        for child in running:
            try:
                child.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()


def relay(child: "subprocess.Popen[bytes]") -> Iterator[tuple[Stream, bytes]]:
    """What the child writes, in the order it comes, until both of its streams end."""
    chunks: queue.SimpleQueue[tuple[Stream, bytes]] = queue.SimpleQueue()

    def pump(name: Stream, stream: IO[bytes] | None) -> None:
        while data := stream.read1(CHUNK_BYTES) if stream else b"":  # type: ignore[attr-defined]  # pipes are BufferedReader
            chunks.put((name, data))
        chunks.put((name, b""))

    for name, stream in (("stdout", child.stdout), ("stderr", child.stderr)):
        threading.Thread(target=pump, args=(name, stream), daemon=True).start()
    open_streams = 2
    while open_streams:
        chunk_name, data = chunks.get()
        if data:
            yield chunk_name, data
        else:
            open_streams -= 1
