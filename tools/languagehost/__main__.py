"""`pulumi-language-python`: print the port, serve the engine until it goes away or asks to stop."""

import os
import select
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import grpc
from pulumi.runtime.proto import language_pb2_grpc

from .processes import Children
from .server import LanguageHost

# A program or policy pack holds a thread as long as it runs; the engine runs one program and a handful of packs.
THREADS = 32
LISTEN_MS = 500
# The engine's own limit (400 MiB): a large stack's configuration must not be cut off.
GRPC_OPTIONS = [("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", 400 << 20)]


def main() -> NoReturn:
    """Ends quietly on SIGINT and SIGTERM (the engine interrupts its plugins' process group) and when the engine is gone, with everything it started."""
    children = Children()

    def leave(signum: int = 0, frame: FrameType | None = None) -> NoReturn:  # noqa: ARG001
        children.terminate()
        os._exit(0)  # handler threads may still wait for the engine; there is nothing to unwind

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    server = grpc.server(ThreadPoolExecutor(max_workers=THREADS), options=GRPC_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageHost(children), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with suppress(BrokenPipeError):  # the wait below ends at once
        os.write(sys.stdout.fileno(), f"{port}\n".encode())
    _wait_for_the_reader_to_go(sys.stdout.fileno())
    leave()


def _wait_for_the_reader_to_go(pipe: int) -> None:
    """The engine reads our output as long as it lives. A parent's process id says less: an engine killed before we look has been replaced by init."""
    reader = select.poll()
    reader.register(pipe, 0)  # errors alone: the reading end is closed
    # Again and again: a signal that comes just before the call would not be heard during it.
    while not reader.poll(LISTEN_MS):
        pass


if __name__ == "__main__":
    main()
