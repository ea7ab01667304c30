"""The batch client against the real server."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from serving.batch.__main__ import Exit, main
from serving.model_config import BatchingSpec, InstancesSpec, PrioritiesSpec, ServingSpec
from tools.bench.serving_models import fixed_cost, write_models
from tools.paths import REPO
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

KILLS = 10
ITEMS = 1_000
SEED = 7
FILES = REPO / "tests" / "data" / "triton-model-repository"


@pytest.fixture(scope="module")
def echo_server(tmp_path_factory):
    """A model of 10 ms a call, batches of 8, two priority levels."""
    repository = tmp_path_factory.mktemp("models")
    batching = BatchingSpec(max_batch_size=8, priorities=PrioritiesSpec(levels=2))
    write_models(repository, fixed_cost("echo", ServingSpec(batching=batching, instances=InstancesSpec(count=1)), cost_ms=10))
    with TritonProcess(repository=repository, log=tmp_path_factory.mktemp("log") / "triton.log") as triton:
        triton.wait_ready()
        yield triton


def records(output):
    return [json.loads(line) for part in sorted(output.rglob("part-*.jsonl")) for line in part.read_text().splitlines()]


def wait_for_parts(output, number):
    deadline = time.monotonic() + 20
    while len(list(output.rglob("part-*.jsonl"))) < number:
        assert time.monotonic() < deadline, "the client stores nothing"
        time.sleep(0.005)


def test_ten_kills_at_random_moments_answer_every_item_exactly_once(echo_server, tmp_path):
    draw = random.Random(SEED)  # noqa: S311  (a reproducible test)
    inputs, output = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    for number in range(ITEMS):
        (inputs / f"{number:04d}").write_bytes(b"poison" if number == 321 else f"item {number}".encode())
    words = ["run", str(inputs), str(output), "--address", echo_server.grpc, "--model", "echo", "--part-items", "20"]
    for _ in range(KILLS):
        before = len(list(output.rglob("part-*.jsonl")))
        process = subprocess.Popen([sys.executable, "-m", "serving.batch", *words], cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_parts(output, before + 1)
        time.sleep(draw.uniform(0, 0.1))
        process.kill()
        assert process.wait(10) == -signal.SIGKILL
    assert len(records(output)) < ITEMS
    assert main(words) == Exit.ITEMS_FAILED
    answered = records(output)
    assert Counter(record["id"] for record in answered) == Counter(path.name for path in inputs.iterdir())
    assert [record["id"] for record in answered if "error" in record] == ["0321"]
    texts = {record["id"]: record["outputs"]["label"] for record in answered if "outputs" in record}
    assert texts == {f"{number:04d}": f"item {number}" for number in range(ITEMS) if number != 321}
    assert main(["check", str(inputs), str(output)]) == Exit.DONE


def test_files_are_classified_as_what_they_are(image_server, tmp_path):
    """Files as others published them: those of this project change, and what a model makes of them with them."""
    assert main(["run", str(FILES), str(tmp_path / "out"), "--address", image_server.grpc, "--model", "magika", "--max-batch", "8"]) == Exit.DONE
    labels = {record["id"]: record["outputs"]["label"] for record in records(tmp_path / "out")}
    assert len(labels) == sum(path.is_file() for path in FILES.rglob("*"))
    assert labels["simple_identity/1/model.py"] == "python"
    assert (labels["simple/1/model.onnx"], labels["simple/config.pbtxt"]) == ("onnx", "textproto")


def test_a_model_that_the_server_lacks_is_named(image_server, tmp_path, capsys):
    assert main(["run", str(FILES), str(tmp_path / "out"), "--address", image_server.grpc, "--model", "nothing"]) == Exit.REFUSED
    assert "does not describe model 'nothing'" in capsys.readouterr().err
