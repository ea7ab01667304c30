"""HTTP/1.1 with keep-alive: as many connections as there are requests in flight, and no retry of any kind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp

from loadtests.address import OwnAddress
from loadtests.payloads import Document, HttpRequest, Signature, http_binary, judge, read_http
from loadtests.samples import DETAIL_MAX, Answer, ErrorKind
from loadtests.target import Send
from serving.contract import JSON_LENGTH_HEADER


@dataclass(frozen=True, kw_only=True)
class HttpTarget:
    """Sends the documents in turn. `authority` is the Host header, by which a gateway chooses the route.

    Only POST is sent: aiohttp repeats an idempotent request on a connection that broke, which would hide a failure.
    """

    name: str
    address: OwnAddress
    authority: str
    signature: Signature
    documents: tuple[Document, ...]
    version: int | None = None

    protocol = "http"

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Send]:
        requests = [http_binary(self.signature, document, self.version) for document in self.documents]
        async with aiohttp.ClientSession(
            f"http://{self.address}",
            # The engine bounds time and number; limits here would close the loop.
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Host": self.authority},
            skip_auto_headers=("Accept-Encoding", "User-Agent"),
        ) as client:

            async def send(turn: int) -> Answer:
                index = turn % len(requests)
                return await self._post(client, requests[index], self.documents[index])

            yield send

    async def _post(self, client: aiohttp.ClientSession, request: HttpRequest, document: Document) -> Answer:
        try:
            async with client.post(request.path, data=request.body, headers=request.headers, allow_redirects=False) as response:
                body = await response.read()
        except aiohttp.ClientConnectorError as error:
            return Answer(None, error=ErrorKind.CONNECT, detail=str(error)[:DETAIL_MAX])
        except (aiohttp.ClientError, OSError) as error:
            return Answer(None, error=ErrorKind.BROKEN, detail=repr(error)[:DETAIL_MAX])
        if response.status != HTTPStatus.OK:
            return Answer(response.status, error=ErrorKind.STATUS, detail=f"{response.status} {body[:DETAIL_MAX].decode(errors='replace')}")
        length = response.headers.get(JSON_LENGTH_HEADER)
        return judge(response.status, document, lambda: read_http(self.signature, None if length is None else int(length), body))
