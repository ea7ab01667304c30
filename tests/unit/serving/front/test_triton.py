"""What goes over the wire to Triton, and what comes back, against a server that speaks its protocol."""

import asyncio

import grpc
import pytest

from serving.front.faults import RequestFault
from serving.front.triton import Call, TritonModel
from tests.unit.serving.batch.fake_triton import FakeTriton, Refuse, fake_triton
from tests.unit.serving.front.house import settings


@pytest.fixture
def triton():
    with fake_triton() as server:
        yield server


def ask(triton: FakeTriton, *files: bytes, times: int = 1, **parts):
    """The answer to `files`, or the fault; `model` are keys of the target, the rest is the call."""
    model = {"address": triton.address, **parts.pop("model", {})}
    call = Call(**{"seconds": 5.0, **parts})

    async def run():
        target = TritonModel(settings(model=model).model)
        try:
            for _ in range(times):
                answer = await target.infer(list(files), call)
            return answer
        finally:
            await target.close()

    return asyncio.run(run())


def test_files_come_back_as_what_the_model_says_of_each(triton):
    answer = ask(triton, b"a\x00", b"", b"ccc")
    assert answer.version == "1"
    assert [item["length"] for item in answer.items] == [2, 0, 3]
    assert answer.items[0]["text"] == "a\x00"


def test_version_priority_deadline_and_id_go_along(triton):
    ask(triton, b"x", version="2", priority="batch", request_id="r-1", seconds=2.5, model={"priorities": {"realtime": 1, "batch": 3}})
    [(request, metadata)] = triton.seen
    assert (request.model_name, request.model_version, request.id) == ("echo", "2", "r-1")
    assert metadata["x-model-version"] == "2"
    assert request.parameters["priority"].uint64_param == 3
    assert request.parameters["timeout"].int64_param == 2_500_000


def test_a_model_without_priority_levels_is_sent_none_and_a_request_without_a_version_names_none(triton):
    """Triton refuses a priority above the levels that it has, and the gateway would pin a version that is named."""
    ask(triton, b"x", priority="batch")
    [(request, metadata)] = triton.seen
    assert "priority" not in request.parameters
    assert "x-model-version" not in metadata
    assert request.model_version == ""


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, 400),
        (grpc.StatusCode.NOT_FOUND, 404),
        (grpc.StatusCode.UNAVAILABLE, 503),
        (grpc.StatusCode.INTERNAL, 502),
        (grpc.StatusCode.UNKNOWN, 502),
        (grpc.StatusCode.DATA_LOSS, 502),
    ],
)
def test_every_status_is_a_fault_and_is_asked_once(triton, code, status):
    """istio/istio#13851: gRPC itself repeats what it believes unseen, unless told not to."""

    def fault(_):
        raise Refuse(code, "reason\n\nAt:\n  model.py(3): execute")

    triton.faults = fault
    with pytest.raises(RequestFault) as refused:
        ask(triton, b"x")
    assert refused.value.status == status
    assert "model.py" not in refused.value.message
    assert triton.requests == 1


def test_a_deadline_that_passes_is_a_504(triton):
    triton.delay_seconds = lambda: 5.0
    with pytest.raises(RequestFault) as refused:
        ask(triton, b"x", seconds=0.05)
    assert refused.value.status == 504


def test_nobody_there_is_a_503_at_once():
    with fake_triton() as gone:
        pass
    with pytest.raises(RequestFault) as refused:
        ask(gone, b"x", seconds=20)
    assert (refused.value.status, refused.value.retry_after) == (503, 5)


def test_outputs_of_fewer_items_than_asked_are_a_fault(triton):
    """A Python backend that is broken answers with empty tensors."""
    triton.empty = True
    with pytest.raises(RequestFault) as refused:
        ask(triton, b"a", b"b")
    assert refused.value.status == 502


def test_readiness_is_the_models_own_and_false_when_nobody_is_there(triton):
    async def ready(address):
        target = TritonModel(settings(model={"address": address}).model)
        try:
            return await target.ready(2.0)
        finally:
            await target.close()

    assert asyncio.run(ready(triton.address)) is True
    triton.ready = False
    assert asyncio.run(ready(triton.address)) is False
    assert asyncio.run(ready("127.0.0.1:1")) is False
