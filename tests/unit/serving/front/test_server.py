"""The process around the application."""

import asyncio
import signal
import socket

import pytest
import uvicorn

from serving.front.server import UNREAD_MILLISECONDS, FrontServer, listening
from serving.front.state import Front
from tests.unit.serving.front.house import StubModel, settings


def test_connections_send_at_once_and_are_cut_off_when_nobody_reads():
    """Both are inherited from the listening socket; asyncio would set the first only for a socket of another make."""
    with listening(0) as listener, socket.create_connection(("127.0.0.1", listener.getsockname()[1])):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNREAD_MILLISECONDS


async def nothing(scope, receive, send):
    raise AssertionError


@pytest.mark.parametrize(("signals", "drains"), [([signal.SIGTERM], True), ([signal.SIGTERM] * 2, True), ([signal.SIGINT], False)])
def test_sigterm_drains_and_a_second_one_or_an_interrupt_does_not_wait(signals, drains):
    async def run():
        front = Front(settings(), StubModel())
        server = FrontServer(uvicorn.Config(nothing, log_config=None), front)
        server.start_with(asyncio.get_running_loop())
        for each in signals:
            server.handle_exit(each, None)
            await asyncio.sleep(0)
        assert front.draining.is_set() is drains
        assert server.should_exit is (len(signals) > 1 or not drains)
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            while not server.should_exit:  # noqa: ASYNC110  the server itself looks ten times a second
                await asyncio.sleep(0)

    asyncio.run(run())
