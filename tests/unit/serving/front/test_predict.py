"""One file in, one prediction out, and what a caller is told."""

import json
import logging

import pytest

from serving.front.faults import RequestFault, of_grpc
from tests.unit.serving.front.house import visit

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


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("?version=0", {}),
        ("?version=1.5", {}),
        ("?version=x", {}),
        ("?priority=high", {}),
        ("?timeout_ms=0", {}),
        ("?timeout_ms=soon", {}),
        ("?timeout_ms=5_0", {}),
        ("?timeout_ms=%2B50", {}),
        ("", {"x-timeout-ms": "5_0"}),
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


@pytest.mark.parametrize("files", [[], [("file", b"a"), ("file", b"b")]])
def test_a_form_has_exactly_one_file(files):
    async def test(house):
        answer = await house.client.post("/predict", files=files or {"field": (None, b"text")})
        assert answer.status_code == 400
        assert f"the form has {len(files)} files" in answer.json()["error"]["message"]

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


def test_a_fault_says_its_kind_by_code():
    assert RequestFault(429, "queue_full", "m", 0.2).headers() == {"Retry-After": "1"}
    assert RequestFault(400, "bad_request", "m").headers() == {}


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


@pytest.mark.parametrize(
    ("query", "headers", "said"),
    [
        ("", [("x-priority", "batch"), ("x-priority", "realtime")], "header x-priority is sent more than once"),
        ("", [("x-model-version", "1"), ("x-model-version", "2")], "header x-model-version is sent more than once"),
        ("?timeout_ms=5&timeout_ms=6", [], "parameter timeout_ms is sent more than once"),
    ],
)
def test_wishes_that_contradict_each_other_are_refused_not_chosen_from(query, headers, said):
    async def test(house):
        answer = await house.client.post(f"/predict{query}", content=b"x", headers=headers)
        assert answer.status_code == 400
        assert said in answer.json()["error"]["message"]
        assert house.model.calls == []

    visit(test)
