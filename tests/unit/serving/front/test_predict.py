"""One file in, one prediction out: limits, deadlines, and what a caller is told."""

import asyncio
import json
import logging

import pytest

from serving.front.faults import RequestFault, of_grpc
from tests.unit.serving.front.house import Exchange, exchange, visit

MIB = 1024 * 1024
SECRET = b"the content of the file"


def test_a_file_may_come_as_a_form_or_as_the_body_itself():
    async def test(house):
        for arguments in ({"files": {"file": ("a.txt", SECRET)}}, {"content": SECRET}):
            for path in ("/predict", "/v1/models/echo/predict"):
                answer = await house.client.post(path, **arguments)
                assert answer.status_code == 200
                assert answer.json()["outputs"] == {"size": len(SECRET), "head": "the cont"}
                assert (answer.json()["model"], answer.json()["version"]) == ("echo", "1")

    visit(test)


def test_what_curl_sends_as_a_form_of_another_kind_is_the_file_itself():
    async def test(house):
        answer = await house.client.post("/predict", content=b"a=b&c", headers={"content-type": "application/x-www-form-urlencoded"})
        assert answer.json()["outputs"]["size"] == 5

    visit(test)


def test_version_priority_and_time_go_on_by_header_and_by_parameter():
    async def test(house):
        headers = {"x-model-version": "2", "x-priority": "batch", "x-timeout-ms": "1500", "x-request-id": "r-1"}
        by_header = await house.client.post("/predict", content=b"x", headers=headers)
        await house.client.post("/predict?version=2&priority=batch&timeout_ms=1500", content=b"x")
        for _, call in house.model.calls:
            assert (call.version, call.priority) == ("2", "batch")
            assert 1.0 < call.seconds <= 1.5
        assert house.model.calls[0][1].request_id == "r-1"
        assert by_header.headers["x-request-id"] == by_header.json()["request_id"] == "r-1"

    visit(test)


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("?version=0", {}),
        ("?version=1.5", {}),
        ("?version=x", {}),
        ("?priority=high", {}),
        ("?timeout_ms=0", {}),
        ("?timeout_ms=soon", {}),
        ("", {"x-priority": "high"}),
        ("", {"x-model-version": "-1"}),
        ("?version=1", {"x-model-version": "2"}),
        ("", {"content-type": "multipart/form-data"}),
        ("", {"content-type": "multipart/form-data; boundary=x"}),
    ],
)
def test_a_wish_or_body_that_cannot_be_is_a_400_that_shows_no_value_back(query, headers):
    async def test(house):
        answer = await house.client.post(f"/predict{query}", content=SECRET, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "bad_request"
        assert SECRET.decode() not in answer.text
        assert house.model.calls == []

    visit(test)


def test_a_request_id_that_could_break_a_log_line_is_replaced():
    async def test(house):
        for given in ("a b", "x" * 200, "é"):
            answer = await house.client.post("/predict", content=b"x", headers={"x-request-id": given.encode()})
            assert answer.headers["x-request-id"] not in {given, ""}

    visit(test)


def test_another_model_and_another_path_are_not_found_and_another_method_is_not_allowed():
    async def test(house):
        assert (await house.client.post("/v1/models/other/predict", content=b"x")).status_code == 404
        assert (await house.client.post("/nothing", content=b"x")).json()["error"]["code"] == "not_found"
        got = await house.client.get("/predict")
        assert (got.status_code, got.headers["allow"]) == (405, "POST")

    visit(test)


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_above_the_limit_is_refused_while_it_arrives(announced):
    async def test(house):
        going = Exchange(house.app, "/predict", {"content-length": str(5 * MIB)} if announced else {}).start()
        if not announced:
            for _ in range(40):
                going.send(b"x" * (MIB // 8))
        await going.end()
        assert going.status == 413
        # Of 40 chunks the limit of 1 MiB takes in eight and one too many.
        assert going.unread == (0 if announced else 31)
        assert house.front.memory.held == 0
        assert house.model.calls == []

    visit(test, maxRequestMib=1)


def test_a_length_that_lies_is_counted_not_believed():
    async def test(house):
        answer = await exchange(house.app, "/predict", [b"x" * MIB, b"x"], headers={"content-length": "10"})
        assert answer.status == 413

    visit(test, maxRequestMib=1)


def test_a_form_is_limited_as_well():
    async def test(house):
        answer = await house.client.post("/predict", files={"file": b"x" * MIB})
        assert answer.status_code == 413
        assert (await house.client.post("/predict", files={"file": b"x" * (MIB - 1000)})).status_code == 200

    visit(test, maxRequestMib=1)


def test_a_compressed_body_is_refused():
    async def test(house):
        assert (await house.client.post("/predict", content=b"x", headers={"content-encoding": "gzip"})).status_code == 415

    visit(test)


@pytest.mark.parametrize("files", [[], [("file", b"a"), ("file", b"b")]])
def test_a_form_has_exactly_one_file(files):
    async def test(house):
        answer = await house.client.post("/predict", files=files or {"field": (None, b"text")})
        assert answer.status_code == 400
        assert f"the form has {len(files)} files" in answer.json()["error"]["message"]

    visit(test)


def test_429_comes_exactly_when_all_places_are_taken_and_says_when_to_come_back():
    async def test(house):
        # A time at the model for Retry-After to go by.
        house.front.gate.mean_seconds = 3.0
        house.model.hold.clear()
        taken = [Exchange(house.app, "/predict").start() for _ in range(2 + 3)]
        for one in taken:
            one.send(b"x", more=False)
        await house.until(lambda: house.front.gate.waiting == 3)
        assert house.model.at_the_model == 2
        refused = await house.client.post("/predict", content=b"x")
        # Five requests of three seconds, two at a time.
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "8")
        assert refused.json()["error"]["code"] == "queue_full"
        house.model.hold.set()
        for one in taken:
            assert (await one.end()).status == 200
        assert (await house.client.post("/predict", content=b"x")).status_code == 200
        assert house.model.most_at_once == 2
        assert house.sample("front_rejected_total", reason="queue_full") == 1

    visit(test, concurrency=2, maxWaiting=3)


def test_a_body_that_is_still_on_its_way_takes_a_place_and_none_at_the_model():
    async def test(house):
        slow = Exchange(house.app, "/predict").start()
        slow.send(b"x")
        await house.until(lambda: house.front.gate.waiting == 1)
        assert (await house.client.post("/predict", content=b"x")).status_code == 200
        slow.send(b"", more=False)
        assert (await slow.end()).status == 200

    visit(test, concurrency=1, maxWaiting=1)


def test_bodies_that_would_fill_the_memory_are_refused_and_room_comes_back():
    async def test(house):
        house.model.hold.clear()
        first = Exchange(house.app, "/predict").start()
        first.send(b"x" * MIB, more=False)
        await house.until(lambda: house.model.at_the_model == 1)
        refused = await house.client.post("/predict", content=b"x" * (MIB + 1))
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "memory_full")
        assert "retry-after" in refused.headers
        house.model.hold.set()
        assert (await first.end()).status == 200
        assert (await house.client.post("/predict", content=b"x" * (MIB + 1))).status_code == 200
        assert house.front.memory.held == 0

    visit(test, memory=2, maxRequestMib=2)


def test_the_deadline_ends_a_request_wherever_it_is_and_frees_its_place():
    async def test(house):
        house.model.hold.clear()
        at_the_model = await house.client.post("/predict?timeout_ms=30", content=b"x")
        assert at_the_model.status_code == 504
        assert "at the model" in at_the_model.json()["error"]["message"]
        assert house.model.cancelled == 1
        blocking = Exchange(house.app, "/predict").start()
        blocking.send(b"x", more=False)
        await house.until(lambda: house.model.at_the_model == 1)
        waiting = await house.client.post("/predict?timeout_ms=30", content=b"x")
        assert (waiting.status_code, "waiting for a turn" in waiting.text) == (504, True)
        slow = Exchange(house.app, "/predict", query="timeout_ms=30").start()
        slow.send(b"x")
        assert (await slow.end()).status == 408
        house.model.hold.set()
        assert (await blocking.end()).status == 200
        assert (house.front.gate.seats, house.front.gate.in_flight, house.front.memory.held) == (0, 0, 0)

    visit(test, concurrency=1, maxWaiting=4)


def test_a_caller_may_ask_for_less_time_and_not_for_more():
    async def test(house):
        await house.client.post("/predict?timeout_ms=3600000", content=b"x")
        assert house.model.calls[0][1].seconds <= 2

    visit(test, timeoutSeconds=2.0)


def test_a_caller_who_hangs_up_is_forgotten_at_the_model_too():
    async def test(house):
        house.model.hold.clear()
        going = Exchange(house.app, "/predict").start()
        going.send(b"x", more=False)
        await house.until(lambda: house.model.at_the_model == 1)
        going.hang_up()
        await going.end()
        assert (going.status, house.model.cancelled) == (0, 1)
        assert (house.front.gate.seats, house.front.memory.held) == (0, 0)
        half = Exchange(house.app, "/predict").start()
        half.send(b"x")
        half.hang_up()
        assert (await half.end()).status == 0
        assert house.sample("front_requests_total", route="/predict", code="499") == 2

    visit(test)


def raising(error):
    def fault(_):
        raise error

    return fault


@pytest.mark.parametrize(
    ("grpc_status", "status", "retry_after"),
    [
        ("INVALID_ARGUMENT", 400, None),
        ("NOT_FOUND", 404, None),
        ("UNAVAILABLE", 503, "5"),
        ("UNIMPLEMENTED", 503, "5"),
        ("RESOURCE_EXHAUSTED", 503, "5"),
        ("DEADLINE_EXCEEDED", 504, None),
        ("INTERNAL", 502, None),
        ("UNKNOWN", 502, None),
        ("", 502, None),
    ],
)
def test_what_the_model_answers_has_one_status_each_and_no_stack_trace(grpc_status, status, retry_after):
    async def test(house):
        trace = 'unexpected shape\n\nAt:\n  /models/echo/1/model.py(35): execute\n  File "secret.py"'
        house.model.fault = raising(of_grpc(grpc_status, trace, 5))
        answer = await house.client.post("/predict", content=b"x")
        assert (answer.status_code, answer.headers.get("retry-after")) == (status, retry_after)
        assert answer.json()["error"]["retryable"] is (retry_after is not None)
        assert "/models/" not in answer.text
        assert "secret.py" not in answer.text
        assert len(house.model.calls) == 1

    visit(test)


def test_a_fault_of_the_front_itself_says_nothing_of_its_inside(caplog):
    async def test(house):
        house.model.fault = raising(KeyError("inner_name"))
        answer = await house.client.post("/predict", content=b"x")
        assert answer.status_code == 500
        assert "inner_name" not in answer.text
        assert answer.headers["x-request-id"] == answer.json()["error"]["request_id"]

    visit(test)
    assert "inner_name" in caplog.text


def test_every_request_is_one_log_line_with_its_id_and_without_its_content(caplog):
    async def test(house):
        with caplog.at_level(logging.INFO, "serving.front.access"):
            await house.client.post(f"/predict?token={SECRET.decode()}", content=SECRET, headers={"x-request-id": "r-7"})
            await house.client.get("/health/live")

    visit(test)
    [line] = [record.getMessage() for record in caplog.records if record.name == "serving.front.access"]
    said = json.loads(line)
    assert (said["request_id"], said["route"], said["status"], said["bytes_in"]) == ("r-7", "/predict", 200, len(SECRET))
    assert {"ms", "queue_ms", "version", "priority", "bytes_out", "peer"} <= said.keys()
    assert SECRET.decode() not in caplog.text


def test_requests_are_counted_by_route_and_code_and_paths_make_no_series():
    async def test(house):
        for path in ("/predict", "/a", "/b", "/v1/models/echo/predict"):
            await house.client.post(path, content=b"x")
        assert house.sample("front_requests_total", route="/predict", code="200") == 1
        assert house.sample("front_requests_total", route="/v1/models/{model}/predict", code="200") == 1
        assert house.sample("front_requests_total", route="other", code="404") == 2
        # The objective is an edge, and so are 0.8 and 1.25 times of it.
        for edge in ("0.16", "0.2", "0.25"):
            assert house.sample("front_request_duration_seconds_bucket", route="/predict", le=edge) == 1

    visit(test)


def test_ready_is_the_models_word_and_live_is_the_processs_own():
    async def test(house):
        assert (await house.client.get("/health/ready")).status_code == 200
        house.front._ready_until = 0
        house.model.is_ready = False
        unready = await house.client.get("/health/ready")
        assert (unready.status_code, unready.json()["reason"]) == (503, "model 'echo' is not ready")
        house.model.is_ready = True
        house.front.draining.set()
        assert (await house.client.get("/health/ready")).json()["reason"] == "this pod is on its way out"
        assert (await house.client.get("/health/live")).status_code == 200

    visit(test)


def test_realtime_goes_before_batch_and_each_in_its_order():
    async def test(house):
        house.model.hold.clear()
        going = []
        for name, priority in (("0", "realtime"), ("b1", "batch"), ("b2", "batch"), ("r1", "realtime"), ("r2", "realtime")):
            one = Exchange(house.app, "/predict", {"x-priority": priority}).start()
            one.send(name.encode(), more=False)
            going.append(one)
            await house.until(lambda: house.front.gate.seats == len(going))
            for _ in range(20):
                await asyncio.sleep(0)
        house.model.hold.set()
        for one in going:
            await one.end()
        assert [files[0].decode() for files, _ in house.model.calls] == ["0", "r1", "r2", "b1", "b2"]

    visit(test, concurrency=1, maxWaiting=10)


def test_the_openapi_document_names_the_paths_and_their_bodies():
    async def test(house):
        document = (await house.client.get("/openapi.json")).json()
        assert set(document["paths"]) == {"/predict", "/v1/models/{model}/predict", "/v1/models/{model}/batch"}
        body = document["paths"]["/predict"]["post"]["requestBody"]["content"]
        assert set(body) == {"multipart/form-data", "application/octet-stream"}
        assert {"400", "413", "429", "503", "504"} <= set(document["paths"]["/predict"]["post"]["responses"])
        names = {parameter["name"] for parameter in document["paths"]["/predict"]["post"]["parameters"]}
        assert names == {"version", "priority", "timeout_ms", "x-model-version", "x-priority", "x-timeout-ms"}
        assert (await house.client.get("/docs")).status_code == 200

    visit(test)


def test_a_fault_says_its_kind_by_code():
    assert RequestFault(429, "queue_full", "m", 0.2).headers() == {"Retry-After": "1"}
    assert RequestFault(400, "bad_request", "m").headers() == {}
