"""The process: one event loop, one server, and an end that cuts nothing off."""

import asyncio
import logging
import signal
import sys
from types import FrameType

import uvicorn
from prometheus_client import start_http_server

from serving.front.app import create_app
from serving.front.observed import ACCESS_LOG
from serving.front.settings import FrontSettingsSpec
from serving.front.state import Front
from serving.front.triton import TritonModel

# Longer than the proxies before it keep an idle connection (60 s): the side that sends requests is the one that closes.
KEEP_ALIVE_SECONDS = 75
# From the last request's end to the process's.
STOP_MARGIN_SECONDS = 5
LOG = logging.getLogger("serving.front")


class FrontServer(uvicorn.Server):
    """uvicorn, but SIGTERM first turns readiness off and goes on serving until everyone has heard of it; a second one ends that wait."""

    def __init__(self, config: uvicorn.Config, front: Front) -> None:
        super().__init__(config)
        self._front = front
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)  # type: ignore[arg-type]

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
        host="0.0.0.0",  # noqa: S104  a pod's own address
        port=settings.port,
        lifespan="off",
        ws="none",
        http="h11",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.limits.timeout_seconds) + STOP_MARGIN_SECONDS,
    )
    metrics, _ = start_http_server(settings.metrics_port, registry=front.metrics.registry)
    try:
        await FrontServer(config, front).serve()
    finally:
        metrics.shutdown()
        await front.model.close()


def set_up_logs() -> None:
    """Access lines are JSON on standard output, everything else goes to standard error."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    # It tells the bytes at which a body is wrong.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    ACCESS_LOG.addHandler(logging.StreamHandler(sys.stdout))
    ACCESS_LOG.propagate = False
