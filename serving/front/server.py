"""The process: one event loop, one server, and an end that cuts nothing off."""

import asyncio
import logging
import signal
import socket
import sys
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from serving.front.app import create_app
from serving.front.observed import ACCESS_LOG
from serving.front.settings import FrontSettingsSpec
from serving.front.state import Front
from serving.front.triton import TritonModel
from serving.metrics_server import serve_metrics

# Longer than the proxies before it keep an idle connection (60 s): the side that sends requests is the one that closes.
KEEP_ALIVE_SECONDS = 75
# From the first byte of a request to the end of its head.
HEAD_SECONDS = 10
# A peer that takes nothing for this long is cut off by the kernel: to close a connection in good order needs a reader.
UNREAD_MILLISECONDS = 60_000
# From the last request's end to the process's.
STOP_MARGIN_SECONDS = 5
BACKLOG = 2048
LOG = logging.getLogger("serving.front")


class Connection(H11Protocol):
    """uvicorn's, which alone would wait without end for a request that never quite begins: a peer who sends its head byte by byte, or nothing, is cut off."""

    _late: asyncio.TimerHandle | None = None
    _begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._cut_off_in(KEEP_ALIVE_SECONDS)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            # The head is there; its body has the deadline of the request.
            self._begun = False
            self._cut_off_in(None)
        elif not self._begun:
            self._begun = True
            self._cut_off_in(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cut_off_in(None)
        super().connection_lost(exc)

    def _cut_off_in(self, seconds: float | None) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


class FrontServer(uvicorn.Server):
    """uvicorn, but SIGTERM first turns readiness off and goes on serving until everyone has heard of it; a second one ends that wait."""

    def __init__(self, config: uvicorn.Config, front: Front) -> None:
        super().__init__(config)
        self._front = front
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self.start_with(asyncio.get_running_loop())
        await super().serve(sockets)

    def start_with(self, loop: asyncio.AbstractEventLoop) -> None:
        """From here on a signal finds the loop that it leaves word in."""
        self._loop = loop

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  Python's signature of signal handlers
        """Runs between two instructions of the loop, so it only leaves word there. The signal is not raised again: an end that was asked for is no fault."""
        if self._loop is None or self._front.draining.is_set() or sig == signal.SIGINT:
            self.should_exit = True
            return
        self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        LOG.info("draining for %g s", self._front.settings.drain_seconds)
        self._front.draining.set()
        asyncio.get_running_loop().call_later(self._front.settings.drain_seconds, self._exit)

    def _exit(self) -> None:
        self.should_exit = True


async def run(settings: FrontSettingsSpec) -> None:
    """Serve until told to stop."""
    front = Front(settings, TritonModel(settings.model))
    config = uvicorn.Config(
        create_app(front),
        lifespan="off",
        ws="none",
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.limits.timeout_seconds) + STOP_MARGIN_SECONDS,
    )
    metrics = serve_metrics(settings.metrics_port, front.metrics.registry)
    try:
        await FrontServer(config, front).serve([listening(settings.port)])
    finally:
        metrics.shutdown()
        await front.model.close()


def listening(port: int) -> socket.socket:
    """A socket whose connections inherit what is set on it (tcp(7)); on all of the pod's addresses.

    asyncio sets TCP_NODELAY only where the socket's protocol is spelled out, which create_server does not; without it an answer took 40 ms more,
    since its body waited for the acknowledgement of its head.
    """
    made = socket.create_server(("", port), backlog=BACKLOG)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MILLISECONDS)
    return made


def set_up_logs() -> None:
    """Access lines are JSON on standard output, everything else goes to standard error."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    # It tells the bytes at which a body is wrong.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    ACCESS_LOG.addHandler(logging.StreamHandler(sys.stdout))
    ACCESS_LOG.propagate = False
