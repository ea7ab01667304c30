"""The process around the application."""

import asyncio
import signal
import socket

import pytest
import uvicorn

from serving.front.server import UNREAD_MILLISECONDS, Connection, FrontServer, listening
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


async def answers_the_body(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


def with_connection(test, monkeypatch, *, head_seconds=0.05, idle_seconds=60.0):
    """Run `test` with reader and writer of a connection to a server that gives heads so much time."""
    monkeypatch.setattr("serving.front.server.HEAD_SECONDS", head_seconds)
    monkeypatch.setattr("serving.front.server.KEEP_ALIVE_SECONDS", idle_seconds)

    async def run():
        config = uvicorn.Config(answers_the_body, log_config=None, lifespan="off", ws="none", http=Connection)
        server = FrontServer(config, Front(settings(), StubModel()))
        with listening(0) as listener:
            serving = asyncio.create_task(server.serve([listener]))
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
            async with asyncio.timeout(20):
                await test(reader, writer)
            writer.close()
            server.should_exit = True
            await serving

    asyncio.run(run())


async def cut_off(reader):
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"


def test_who_sends_a_head_byte_by_byte_without_end_is_cut_off(monkeypatch):
    async def trickles(reader, writer):
        writer.write(HEAD + b"X-A: ")
        over = asyncio.create_task(cut_off(reader))
        while not over.done():
            writer.write(b"a")
            await asyncio.sleep(0.005)
        assert over.result()

    with_connection(trickles, monkeypatch)


def test_who_sends_nothing_is_cut_off(monkeypatch):
    async def waits(reader, writer):
        assert await cut_off(reader)

    with_connection(waits, monkeypatch, idle_seconds=0.05)


def test_a_body_has_the_time_of_its_request_and_a_second_request_that_of_the_first(monkeypatch):
    async def asks_twice(reader, writer):
        for content in (b"a", b"b"):
            writer.write(HEAD + b"\r\n")
            await asyncio.sleep(0.2)
            writer.write(content)
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(1) == content

    with_connection(asks_twice, monkeypatch)
