"""Requests of any kind: an answer that is no 500, in JSON, and nothing left behind."""

import asyncio
import json

import httpx
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from serving.front.app import create_app
from serving.front.state import Front
from tests.unit.serving.front.house import StubModel, exchange, settings

PATHS = ("/predict", "/v1/models/echo/predict", "/v1/models/echo/batch", "/v1/models/%00/predict", "/docs", "/x", "//predict", "/predict/")
ANSWERS = {200, 307, 400, 404, 405, 408, 413, 415, 429}
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
JSON_LINES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "b64", "text", "x"]), inner, max_size=3),
    max_leaves=5,
).map(lambda value: json.dumps(value).encode() + b"\n")
TYPES = st.sampled_from(
    [
        "",
        "application/octet-stream",
        "application/x-ndjson",
        "application/json; charset=x",
        "multipart/form-data",
        "multipart/form-data; boundary=b",
        'multipart/form-data; boundary="',
        "multipart/form-data; boundary=\x7f",
        "application/x-www-form-urlencoded",
        ";;;",
    ]
)
BODIES = st.one_of(
    st.binary(max_size=200),
    st.lists(JSON_LINES, max_size=6).map(b"".join),
    st.binary(max_size=60).map(lambda content: b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n' + content + b"\r\n--b--\r\n"),
    st.binary(max_size=60).map(lambda content: b"--b\r\n" + content + b"\r\n--b--\r\n"),
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "x-model-version",
            "x-priority",
            "x-timeout-ms",
            "x-request-id",
            "content-encoding",
            "content-length",
            "accept",
            "expect",
            "transfer-encoding",
        ]
    ),
    TEXT | st.integers(-5, 10**9).map(str),
    max_size=4,
)
QUERIES = st.dictionaries(st.sampled_from(["version", "priority", "timeout_ms", "other"]), TEXT, max_size=3)


@pytest.fixture(scope="module")
def loop():
    """One loop and one front for all examples: what one leaves behind the next would find."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def front():
    return Front(settings(maxRequestMib=1), StubModel())


@pytest.fixture(scope="module")
def app(front):
    return create_app(front)


@effort(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_request_is_a_500(loop, front, app, data):
    path, headers, query, content_type, body = (data.draw(each) for each in (st.sampled_from(PATHS), HEADERS, QUERIES, TYPES, BODIES))
    cut = data.draw(st.integers(0, len(body)))
    parts = {"headers": {**headers, "content-type": content_type}, "query": str(httpx.QueryParams(query))}
    answer = loop.run(exchange(app, path, [body[:cut], body[cut:]], **parts))
    assert answer.status in ANSWERS, (answer.status, answer.body)
    if answer.status >= 400:
        assert set(json.loads(answer.body)["error"]) == {"code", "message", "retryable", "request_id"}
    assert (front.gate.seats, front.gate.in_flight, front.streams.seats, front.memory.held) == (0, 0, 0, 0)
