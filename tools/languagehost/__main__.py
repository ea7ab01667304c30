"""`pulumi-language-python`: print the port, serve the engine until it goes away or asks to stop."""

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import NoReturn

import grpc
from pulumi.runtime.proto import language_pb2_grpc

from .processes import Children
from .server import LanguageHost

# A program or policy pack holds a thread as long as it runs; the engine runs one program and a handful of packs.
THREADS = 32
PARENT_CHECK_SECONDS = 0.5
# The engine's process id, as the wrapper saw it when it was started.
ENGINE_VARIABLE = "LANGUAGE_HOST_ENGINE"
# The engine's own limit (400 MiB): a large stack's configuration must not be cut off.
GRPC_OPTIONS = [("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", 400 << 20)]


def main() -> NoReturn:
    """Ends quietly on SIGINT and SIGTERM (the engine interrupts its plugins' process group) and when the engine is gone, with everything it started."""
    children = Children()

    def leave(signum: int = 0, frame: FrameType | None = None) -> NoReturn:  # noqa: ARG001
        children.terminate()
        sys.stdout.flush()
        os._exit(0)  # handler threads may still wait for the engine; there is nothing to unwind

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    server = grpc.server(ThreadPoolExecutor(max_workers=THREADS), options=GRPC_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageHost(children), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    engine = int(os.environ.pop(ENGINE_VARIABLE, os.getppid()))
    while os.getppid() == engine:
        time.sleep(PARENT_CHECK_SECONDS)
    leave()


if __name__ == "__main__":
    main()
