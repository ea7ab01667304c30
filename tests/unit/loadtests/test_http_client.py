"""The HTTP client against a server that answers byte by byte what a test tells it to."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from loadtests.address import own_address
from loadtests.http_client import BrokenError, HttpClient, parse_head, post

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
REQUEST = post("/v2", "a.test", {"X-Kind": "test"}, b"body")


class Scripted:
    """Answers the n-th request it gets with the n-th script: pieces to send one after the other, None to close."""

    def __init__(self, *scripts: list[bytes | None]) -> None:
        self.scripts = list(scripts)
        self.connections = 0
        self.requests: list[bytes] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.requests.append(await reader.readexactly(len(REQUEST)))
                for piece in self.scripts.pop(0):
                    if piece is None:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0.01)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def talk(server: Scripted, conversation: Callable[[HttpClient], Awaitable[None]]) -> None:
    async def run() -> None:
        listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
        client = HttpClient(own_address("127.0.0.1", listening.sockets[0].getsockname()[1]))
        async with listening:
            await conversation(client)
            client.close()
            await asyncio.sleep(0.02)

    asyncio.run(run())


def test_a_connection_is_used_again_and_an_answer_may_come_in_pieces() -> None:
    server = Scripted([OK], [OK[:10], OK[10:40], OK[40:]])

    async def conversation(client: HttpClient) -> None:
        for _ in range(2):
            answer = await client.send(REQUEST)
            assert (answer.status, answer.headers["content-length"], answer.body) == (200, "2", b"hi")

    talk(server, conversation)
    assert server.connections == 1
    assert server.requests == [b"POST /v2 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nX-Kind: test\r\n\r\nbody"] * 2


def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    server = Scripted([OK], [OK], [OK])

    async def conversation(client: HttpClient) -> None:
        await asyncio.gather(*(client.send(REQUEST) for _ in range(3)))

    talk(server, conversation)
    assert server.connections == 3


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([None], "the server closed"),
        ([OK[:20], None], "the server closed"),
        ([OK[:-1], None], "the server closed"),
        ([b"SSH-2.0\r\n\r\n"], "no HTTP answer"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], "no Content-Length"),
        ([b"x" * 70_000], "does not end"),
    ],
)
def test_an_answer_that_is_not_complete_is_an_error_and_never_sent_again(script: list[bytes | None], reason: str) -> None:
    server = Scripted(script, [OK])

    async def conversation(client: HttpClient) -> None:
        with pytest.raises(BrokenError, match=reason):
            await client.send(REQUEST)
        assert len(server.requests) == 1
        assert (await client.send(REQUEST)).body == b"hi"

    talk(server, conversation)
    assert server.connections == 2


def test_a_connection_that_the_server_gave_up_is_not_used_again() -> None:
    server = Scripted([OK, None], [OK.replace(b"\r\nContent", b"\r\nConnection: close\r\nContent")], [OK])

    async def conversation(client: HttpClient) -> None:
        for _ in range(3):
            assert (await client.send(REQUEST)).body == b"hi"
            await asyncio.sleep(0.05)

    talk(server, conversation)
    assert server.connections == 3


def test_a_request_that_is_given_up_takes_its_connection_with_it() -> None:
    server = Scripted([], [OK])

    async def conversation(client: HttpClient) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.send(REQUEST)
        assert (await client.send(REQUEST)).body == b"hi"

    talk(server, conversation)
    assert server.connections == 2


def test_header_names_do_not_depend_on_case() -> None:
    assert parse_head(b"HTTP/1.1 503 Service Unavailable\r\nCONTENT-length: 0") == (503, {"content-length": "0"})
