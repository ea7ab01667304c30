"""Triton over HTTP/1.1."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from loadtests.address import OwnAddress
from loadtests.http_client import BrokenError, HttpClient, Response, post
from loadtests.payloads import Document, HttpRequest, Prediction, Signature, http_binary, judge, read_http
from loadtests.samples import DETAIL_MAX, Answer, ErrorKind
from loadtests.target import Send
from serving.contract import JSON_LENGTH_HEADER

Form = Callable[[Signature, Document, int | None], HttpRequest]


@dataclass(frozen=True, kw_only=True)
class HttpTarget:
    """Sends the documents in turn, in one of the forms of `payloads`. `authority` is the Host header, by which a gateway chooses the route."""

    name: str
    address: OwnAddress
    authority: str
    signature: Signature
    documents: tuple[Document, ...]
    version: int | None = None
    form: Form = http_binary

    protocol = "http"

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Send]:
        requests = [self._request(document) for document in self.documents]
        client = HttpClient(self.address)

        async def send(turn: int) -> Answer:
            index = turn % len(requests)
            return await self._ask(client, requests[index], self.documents[index])

        try:
            yield send
        finally:
            client.close()

    def _request(self, document: Document) -> bytes:
        request = self.form(self.signature, document, self.version)
        return post(request.path, self.authority, request.headers, request.body)

    async def _ask(self, client: HttpClient, request: bytes, document: Document) -> Answer:
        try:
            response = await client.send(request)
        except BrokenError as error:
            return Answer(None, error=ErrorKind.BROKEN, detail=str(error)[:DETAIL_MAX])
        except OSError as error:
            return Answer(None, error=ErrorKind.CONNECT, detail=str(error)[:DETAIL_MAX])
        if response.status != HTTPStatus.OK:
            return Answer(response.status, error=ErrorKind.STATUS, detail=f"{response.status} {response.body[:DETAIL_MAX].decode(errors='replace')}")
        return judge(response.status, document, lambda: self._read(response))

    def _read(self, response: Response) -> Prediction:
        length = response.headers.get(JSON_LENGTH_HEADER.lower())
        return read_http(self.signature, None if length is None else int(length), response.body)
