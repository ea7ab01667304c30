"""Many items in, one line per item out."""

import asyncio
import base64
import json

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from serving.front.batch import BatchResponse
from serving.front.faults import RequestFault, bad_request
from serving.front.items import lines
from tests.unit.serving.front.house import Exchange, as_chunks, exchange, visit

BATCH = "/v1/models/echo/batch"
NDJSON = {"content-type": "application/x-ndjson"}
MIB = 1024 * 1024


def line(text, **more):
    return json.dumps({"text": text, **more}).encode() + b"\n"


def answers(body):
    *items, end = [json.loads(each) for each in body.splitlines()]
    return items, end["end"]


def test_every_item_is_answered_in_its_order_in_requests_of_up_to_the_largest_batch():
    async def test(house):
        body = b"".join(line("x" * n, id=f"n{n}") for n in range(100))
        answer = await house.client.post(BATCH, content=body, headers=NDJSON)
        items, end = answers(answer.content)
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert [(item["index"], item["id"], item["outputs"]["size"]) for item in items] == [(n, f"n{n}", n) for n in range(100)]
        assert end == {"items": 100, "failed": 0, "complete": True}
        sizes = [len(files) for files, _ in house.model.calls]
        assert max(sizes) == 8
        assert len(sizes) <= 15
        assert house.model.most_at_once <= 3
        assert {call.priority for _, call in house.model.calls} == {"batch"}
        assert house.sample("front_batch_items_total", outcome="answered") == 100

    visit(test, batchInFlight=3)


def test_files_of_a_form_are_items_by_their_names():
    async def test(house):
        answer = await house.client.post(BATCH, files=[("f", ("a.txt", b"aa")), ("f", ("b.bin", b"\x00\xff")), ("note", (None, b"text"))])
        items, end = answers(answer.content)
        assert [(item["id"], item["outputs"]["size"]) for item in items] == [("a.txt", 2), ("b.bin", 2)]
        assert end["complete"] is True

    visit(test)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"nonsense", "bad_request"),
        (b"[1]", "bad_request"),
        (b"{}", "bad_request"),
        (b'{"text": 1}', "bad_request"),
        (b'{"text": "a", "b64": "YQ=="}', "bad_request"),
        (b'{"b64": "a"}', "bad_request"),
        (b'{"text": "a", "id": [1]}', "bad_request"),
        (b'{"text": "a", "id": true}', "bad_request"),
        (b'{"text": "a", "other": 1}', "bad_request"),
        (b"\xff\xfe", "bad_request"),
        (b"[" * 100_000, "bad_request"),
        (b'{"text": "' + b"x" * (MIB + 1) + b'"}', "too_large"),
        (b"x" * (2 * MIB), "too_large"),
    ],
)
def test_a_bad_item_is_answered_as_such_and_the_others_are_served(bad, code):
    async def test(house):
        answer = await house.client.post(BATCH, content=line("a") + bad + b"\n" + line("b", id=7))
        items, end = answers(answer.content)
        assert [item["index"] for item in items] == [0, 1, 2]
        assert items[1]["error"]["code"] == code
        assert items[2]["id"] == 7
        assert ("outputs" in items[0], "outputs" in items[2]) == (True, True)
        assert end == {"items": 3, "failed": 1, "complete": True}

    visit(test, maxRequestMib=1)


def test_bytes_of_any_kind_travel_as_base64_and_half_a_character_is_no_end():
    async def test(house):
        content = bytes(range(256))
        body = json.dumps({"b64": base64.b64encode(content).decode()}).encode() + b"\n" + b'{"text": "\\ud800"}'
        items, end = answers((await house.client.post(BATCH, content=body)).content)
        assert house.model.calls[0][0][0] == content
        assert [item["outputs"]["size"] for item in items] == [256, 1]
        assert end["failed"] == 0

    visit(test)


def test_an_item_that_the_model_refuses_does_not_take_its_batch_with_it():
    async def test(house):
        def refuse(files):
            if b"bad" in files:
                raise bad_request("the model refuses the input: no image")

        house.model.fault = refuse
        items, end = answers((await house.client.post(BATCH, content=line("a") + line("bad") + line("b"))).content)
        assert [("outputs" in item) for item in items] == [True, False, True]
        assert end == {"items": 3, "failed": 1, "complete": True}
        # Once together, then each by itself.
        assert [len(files) for files, _ in house.model.calls] == [3, 1, 1, 1]

    visit(test)


def test_a_request_that_fails_as_a_whole_is_not_repeated_and_every_item_says_so():
    async def test(house):
        def away(_):
            raise RequestFault(503, "unavailable", "the model takes no requests at the moment", 5)

        house.model.fault = away
        items, end = answers((await house.client.post(BATCH, content=line("a") + line("b"))).content)
        assert [(item["error"]["code"], item["error"]["retryable"]) for item in items] == [("unavailable", True)] * 2
        assert end == {"items": 2, "failed": 2, "complete": True}
        assert len(house.model.calls) == 1

    visit(test)


def test_an_item_is_answered_before_the_next_one_is_sent():
    async def test(house):
        going = Exchange(house.app, BATCH, NDJSON).start()
        for n in range(3):
            going.send(line("x" * n))
            await house.until(lambda n=n: going.body.count(b"\n") == n + 1)
        going.send(b"", more=False)
        await going.end()
        assert answers(going.body)[1]["complete"] is True

    visit(test)


def test_further_streams_are_refused_with_429():
    async def test(house):
        going = Exchange(house.app, BATCH, NDJSON).start()
        going.send(line("x"))
        await house.until(lambda: going.body.count(b"\n") == 1)
        refused = await house.client.post(BATCH, content=line("y"))
        assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
        assert (await house.client.post("/predict", content=b"x")).status_code == 200
        going.send(b"", more=False)
        await going.end()
        assert (await house.client.post(BATCH, content=line("y"))).status_code == 200

    visit(test, batchStreams=1)


def test_a_pod_on_its_way_out_answers_what_it_has_read_and_says_where_to_go_on():
    async def test(house):
        house.model.hold.clear()
        going = Exchange(house.app, BATCH, NDJSON).start()
        going.send(line("a") + line("b") + b'{"text": "half')
        await house.until(lambda: house.model.at_the_model == 1)
        house.front.draining.set()
        house.model.hold.set()
        await going.end()
        items, end = answers(going.body)
        assert [item["index"] for item in items] == [0, 1]
        assert (end["items"], end["complete"], end["error"]["code"], end["error"]["retryable"]) == (2, False, "draining", True)

    visit(test)


@pytest.mark.parametrize("before", ["at the model", "while reading"])
def test_a_sender_who_hangs_up_leaves_nothing_behind(before):
    async def test(house):
        if before == "at the model":
            house.model.hold.clear()
        going = Exchange(house.app, BATCH, NDJSON).start()
        going.send(line("x") * 16)
        await house.until(lambda: len(house.model.calls) > 0)
        going.hang_up()
        await going.end()
        assert house.sample("front_requests_total", route="/v1/models/{model}/batch", code="499") == 1
        assert (house.front.streams.seats, house.front.memory.held, house.model.at_the_model) == (0, 0, 0)
        assert b'"end"' not in going.body

    visit(test, batchInFlight=2)


def test_a_form_that_breaks_off_says_so_in_the_end_line_or_as_a_400_before_any_answer():
    async def test(house):
        headers = {"content-type": "multipart/form-data; boundary=b"}
        part = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\nabc\r\n'
        whole = await exchange(house.app, BATCH, [part, b"--b--\r\n"], headers=headers)
        assert answers(whole.body)[1] == {"items": 1, "failed": 0, "complete": True}
        broken = await exchange(house.app, BATCH, [part, part[:50]], headers=headers)
        assert broken.status == 200
        end = answers(broken.body)[1]
        assert (end["items"], end["complete"], end["error"]["code"]) == (1, False, "bad_request")
        nothing = await exchange(house.app, BATCH, [b"--b"], headers=headers)
        assert nothing.status == 400

    visit(test)


def test_no_items_are_answered_by_none():
    async def test(house):
        assert answers((await house.client.post(BATCH, content=b"\n\n")).content) == ([], {"items": 0, "failed": 0, "complete": True})

    visit(test)


def test_another_model_is_not_found_and_a_compressed_body_refused():
    async def test(house):
        assert (await house.client.post("/v1/models/other/batch", content=b"")).status_code == 404
        assert (await house.client.post(BATCH, content=b"", headers={"content-encoding": "gzip"})).status_code == 415

    visit(test)


def test_a_sender_who_sends_nothing_more_does_not_hold_a_stream(monkeypatch):
    monkeypatch.setattr("serving.front.batch.STALL_SECONDS", 0.05)

    async def test(house):
        going = Exchange(house.app, BATCH, NDJSON).start()
        going.send(line("a"))
        await going.end()
        end = answers(going.body)[1]
        assert (end["items"], end["complete"], end["error"]["code"]) == (1, False, "request_timeout")
        assert BatchResponse.media_type == "application/x-ndjson"

    visit(test)


def test_a_sender_who_sends_a_byte_now_and_then_does_not_hold_a_stream(monkeypatch):
    monkeypatch.setattr("serving.front.batch.STALL_SECONDS", 0.2)

    async def test(house):
        going = Exchange(house.app, BATCH, NDJSON).start()
        going.send(line("a"))
        ended = asyncio.ensure_future(going.end())
        async with asyncio.timeout(30):
            while not ended.done():
                going.send(b" ")
                await asyncio.sleep(0.02)
        end = answers(going.body)[1]
        assert (end["items"], end["complete"], end["error"]["code"]) == (1, False, "request_timeout")

    visit(test)


@effort(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=12), max_size=8), st.lists(st.integers(1, 7), max_size=20))
def test_lines_are_the_same_however_the_body_is_cut(contents, cuts):
    whole = b"\n".join(content.replace(b"\n", b" ") for content in contents)
    chunks, rest = [], whole
    for cut in cuts:
        chunks.append(rest[:cut])
        rest = rest[cut:]
    chunks.append(rest)

    async def read():
        return [each async for each in lines(as_chunks(chunks), 10)]

    expected = [each if len(each) <= 10 else None for each in whole.split(b"\n")]
    if expected and expected[-1] == b"":
        expected.pop()
    assert asyncio.run(read()) == expected
