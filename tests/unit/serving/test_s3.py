"""What answers in place of an object store is named, and passes neither for an empty one nor for a content."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from components.errors import PlatformError
from serving.batch.errors import BatchError, ReadError, StoreOutageError
from serving.batch.objects import ObjectStorage, connect
from serving.batch.storage import Item
from serving.repository.bucket import BucketStore
from serving.repository.errors import RepositoryError
from serving.repository.s3 import make_client

LISTING = (
    b"<ListBucketResult><IsTruncated>false</IsTruncated>"
    b"<Contents><Key>in/a</Key><Size>10</Size><ETag>&quot;e&quot;</ETag></Contents></ListBucketResult>"
)
Answer = tuple[int, dict[str, str], bytes]


class Answers(ThreadingHTTPServer):
    """Says `answer` to everything."""

    daemon_threads = True
    answer: Answer = (200, {}, b"")


class Handler(BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        status, headers, body = self.server.answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET  # noqa: N815  (named by the base class)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Answers]:
    with Answers(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def endpoint(server: Answers, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    return f"http://127.0.0.1:{server.server_port}"


NONE_OF_A_STORE: dict[str, Answer] = {
    "a page": (200, {"Content-Type": "text/html"}, b"<html><body>Log in</body></html>"),
    "nothing": (200, {}, b""),
    "a redirection in a circle": (307, {"Location": "/files?list-type=2"}, b""),
    "half a listing": (200, {}, LISTING[:90]),
    "a listing without sizes": (200, {}, LISTING.replace(b"<Size>10</Size>", b"<Size>x</Size>")),
}


@pytest.mark.parametrize("answer", NONE_OF_A_STORE.values(), ids=NONE_OF_A_STORE)
def test_what_is_no_listing_is_no_empty_store(server: Answers, endpoint: str, answer: Answer) -> None:
    server.answer = answer
    with pytest.raises(RepositoryError):
        BucketStore(make_client(endpoint), "files").versions()
    with pytest.raises(BatchError):
        ObjectStorage(connect(endpoint), "files", "").items()


@pytest.mark.parametrize("length", ["x", "-"])
def test_a_length_that_is_none_is_told(server: Answers, endpoint: str, length: str) -> None:
    server.answer = (200, {"Content-Length": length, "ETag": '"e"', "Connection": "close"}, b"content")
    with pytest.raises(PlatformError, match="files/in/a"):
        ObjectStorage(connect(endpoint), "files", "in/").read(Item("a", 7, "e"))


@pytest.mark.parametrize(
    ("headers", "body", "error", "reason"),
    [
        ({"ETag": '"e"'}, b"content", StoreOutageError, "files/in/a: 7 bytes arrived, and 10 were listed"),
        ({"ETag": '"f"'}, b"0123456789", ReadError, "changed after it was listed"),
        ({}, b"0123456789", BatchError, "none of an object store"),
    ],
    ids=["cut off", "another one", "a page"],
)
def test_a_content_that_is_not_the_listed_one_is_never_asked_about(
    server: Answers, endpoint: str, headers: dict[str, str], body: bytes, error: type[Exception], reason: str
) -> None:
    server.answer = (200, headers, body)
    with pytest.raises(error, match=reason):
        ObjectStorage(connect(endpoint), "files", "in/").read(Item("a", 10, "e"))


def test_a_write_that_is_answered_by_a_page_is_no_write(server: Answers, endpoint: str) -> None:
    server.answer = NONE_OF_A_STORE["a page"]
    with pytest.raises(BatchError, match="none of an object store"):
        ObjectStorage(connect(endpoint), "files", "").create("part-000001.jsonl", b"x")
