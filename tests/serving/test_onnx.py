"""ONNX networks on the CPU image, through the backend `onnxruntime` that is written in Python."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2 as pb

from tests.serving.repository import config, infer, network, outputs, states, tensor, write_model
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

FLOATS = [("x", TensorProto.FLOAT, ("n", "width"))]
DOUBLED = [("y", TensorProto.FLOAT, ("n", "width"))]
DOUBLE = network(FLOATS, DOUBLED, helper.make_node("Add", ["x", "x"], ["y"]))
INDICES, PICKED = [("index", TensorProto.INT64, ("n",))], [("picked", TensorProto.FLOAT, ("n",))]
COLUMN, PICKED_COLUMN = [("index", TensorProto.INT64, ("n", 1))], [("picked", TensorProto.FLOAT, ("n", 1))]
TABLE = helper.make_tensor("table", TensorProto.FLOAT, [3], [10, 20, 30])
PICK = network(COLUMN, PICKED_COLUMN, helper.make_node("Gather", ["table", "index"], ["picked"]), table=TABLE)
TEXTS, LAST = [("text", TensorProto.STRING, ("n", 2))], [("same", TensorProto.STRING, ("n", 2))]
ECHO = network(TEXTS, LAST, helper.make_node("Identity", ["text"], ["same"]))
# Says in every row how many rows the run had.
COUNT = network(
    FLOATS,
    DOUBLED,
    helper.make_node("Shape", ["x"], ["rows"], start=0, end=1),
    helper.make_node("Cast", ["rows"], ["count"], to=TensorProto.FLOAT),
    helper.make_node("Sub", ["x", "x"], ["nothing"]),
    helper.make_node("Add", ["nothing", "count"], ["y"]),
)
# Adds up everything it gets, so that a batch has one row whoever asks.
TOTAL = network(FLOATS, [("y", TensorProto.FLOAT, (1, 1))], helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1))
# All that wait half a second become one batch.
JOINING = {"dynamic_batching": pb.ModelDynamicBatching(preferred_batch_size=[4], max_queue_delay_microseconds=500_000)}


def parameter(key: str, value: str) -> dict[str, pb.ModelParameter]:
    return {key: pb.ModelParameter(string_value=value)}


GOOD = {
    "double": (config("double", FLOATS, DOUBLED, **JOINING), DOUBLE),
    "count": (config("count", FLOATS, DOUBLED, **JOINING), COUNT),
    "pick": (config("pick", COLUMN, PICKED_COLUMN, **JOINING), PICK),
    "echo": (config("echo", TEXTS, LAST), ECHO),
    "total": (config("total", FLOATS, [("y", TensorProto.FLOAT, (1, 1))], **JOINING), TOTAL),
    "whole": (config("whole", FLOATS, DOUBLED, batch=0), DOUBLE),
    "tuned": (
        config(
            "tuned",
            FLOATS,
            DOUBLED,
            optimization=pb.ModelOptimizationPolicy(graph=pb.ModelOptimizationPolicy.Graph(level=2)),
            parameters=parameter("intra_op_thread_count", "2") | parameter("execution_mode", "1"),
        ),
        DOUBLE,
    ),
}
BAD = {
    "truncated": (config("truncated", FLOATS, DOUBLED), DOUBLE[:40], "model.onnx cannot be loaded"),
    "garbage": (config("garbage", FLOATS, DOUBLED), b"\0" * 1000, "model.onnx cannot be loaded"),
    "renamed": (config("renamed", [("z", *FLOATS[0][1:])], DOUBLED), DOUBLE, "input 'z' is none of the network's: x"),
    "retyped": (
        config("retyped", [("x", TensorProto.INT32, ("n", "w"))], DOUBLED),
        DOUBLE,
        "input 'x' is TYPE_INT32 in the config and tensor(float)",
    ),
    "reshaped": (
        config("reshaped", [("index", TensorProto.INT64, ("n", 2))], PICKED_COLUMN),
        PICK,
        "input 'index' has shape [-1, 2] in the config (with the batch axis) and [-1, 1] in the network",
    ),
    "short": (config("short", [], PICKED_COLUMN), PICK, "the network needs inputs that the config does not name: index"),
    "levelled": (
        config("levelled", FLOATS, DOUBLED, optimization=pb.ModelOptimizationPolicy(graph=pb.ModelOptimizationPolicy.Graph(level=5))),
        DOUBLE,
        "optimization.graph.level 5: one of [-1, 0, 1, 2]",
    ),
    "threaded": (config("threaded", FLOATS, DOUBLED, parameters=parameter("intra_op_thread_count", "many")), DOUBLE, "intra_op_thread_count 'many'"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProcess]:
    """Good models and bad ones side by side."""
    folder = tmp_path_factory.mktemp("onnx")
    repository = folder / "models"
    for name, (pbtxt, content) in {**GOOD, **{name: entry[:2] for name, entry in BAD.items()}}.items():
        write_model(repository, name, pbtxt, {"model.onnx": content})
    write_model(repository, "empty", config("empty", FLOATS, DOUBLED), {})
    arguments = ["--exit-on-error=false", "--strict-readiness=false"]
    with TritonProcess(repository=repository, arguments=arguments, log=folder / "triton.log") as triton:
        triton.wait_ready()
        yield triton


def ask_at_once(triton: TritonProcess, model: str, *inputs: dict[str, object]) -> list[httpx.Response]:
    """One request for each of the inputs, all at the same time."""
    with ThreadPoolExecutor(len(inputs)) as pool:
        return list(pool.map(lambda one: infer(triton, model, one), inputs))


def test_requests_that_wait_together_are_one_run_and_each_gets_its_own_rows(server: TritonProcess) -> None:
    rows = [tensor("x", "FP32", (size, 2), range(10 * size, 12 * size)) for size in (1, 2, 1)]
    answers = [outputs(answer)["y"] for answer in ask_at_once(server, "double", *rows)]
    assert answers == [[2 * value for value in row["data"]] for row in rows]
    assert [set(outputs(answer)["y"]) for answer in ask_at_once(server, "count", *rows)] == [{4}, {4}, {4}]


def test_one_request_that_the_network_refuses_fails_alone_in_its_batch(server: TritonProcess) -> None:
    asked = [tensor("index", "INT64", (1, 1), [index]) for index in (0, 99, 2, 1)]
    answers = ask_at_once(server, "pick", *asked)
    assert [answer.status_code for answer in answers] == [200, 400, 200, 200]
    assert "the network refuses the input" in answers[1].json()["error"]
    assert [outputs(answers[index])["picked"] for index in (0, 2, 3)] == [[10], [30], [20]]


def test_a_network_that_joins_rows_is_asked_for_each_request(server: TritonProcess) -> None:
    answers = ask_at_once(server, "total", *(tensor("x", "FP32", (1, 2), [value, value]) for value in (1, 2, 3)))
    assert [outputs(answer)["y"] for answer in answers] == [[2], [4], [6]]


def test_texts_keep_their_characters_and_anything_else_is_refused(server: TritonProcess) -> None:
    texts = ["", "Grüße, 世界"]
    assert outputs(infer(server, "echo", tensor("text", "BYTES", (1, 2), texts))) == {"same": texts}
    body = b'{"inputs":[{"name":"text","shape":[1,2],"datatype":"BYTES","parameters":{"binary_data_size":10}}]}'
    headers = {"Inference-Header-Content-Length": str(len(body))}
    refused = httpx.post(f"{server.http}/v2/models/echo/infer", content=body + b"\1\0\0\0a\1\0\0\0\xff", headers=headers)
    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert "not UTF-8" in refused.json()["error"]


def test_without_batching_tensors_keep_every_axis(server: TritonProcess) -> None:
    assert outputs(infer(server, "whole", tensor("x", "FP32", (2, 1), [1, 2]))) == {"y": [2, 4]}


def test_settings_of_the_native_backend_are_taken(server: TritonProcess) -> None:
    assert outputs(infer(server, "tuned", tensor("x", "FP32", (1, 1), [4]))) == {"y": [8]}


@pytest.mark.parametrize(
    ("model", "reason"), [*((name, entry[2]) for name, entry in BAD.items()), ("empty", "the version directory has no model.onnx")]
)
def test_a_model_that_cannot_be_served_says_why_and_stands_in_nobodys_way(server: TritonProcess, model: str, reason: str) -> None:
    state, said = states(server)[model]
    assert state == "UNAVAILABLE"
    assert reason in said
    assert set(GOOD) <= {name for name, (state, _) in states(server).items() if state == "READY"}
