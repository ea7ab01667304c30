"""Configs as the stack renders them, on the real server: what is accepted loads and behaves, what is refused would not have loaded."""

import json
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from components.inference.pod_manifest import build_arguments
from serving.contract import WARMUP_FOLDER
from serving.model_check import CheckSpec
from serving.model_config import ModelManifest, ServingSpec, SignatureSpec, model_manifest, render_config, serving_faults, warmup_files
from tests.serving.repository import infer, outputs, states, tensor, write_model
from tests.unit.components.inference.models import plan
from tools.triton_process import TritonError, TritonProcess

pytestmark = pytest.mark.serving

SLOW_SECONDS = 0.5
AT_ONCE = 8
GENERATED = 10
HALF = 0.5
KEYS = ("batching", "instances", "sequence", "responseCache", "rateLimiter", "warmup")
# Answers every request with its input; says in the log how many it got at once and what stood in them.
IDENTITY = (
    f"SLOW = {SLOW_SECONDS}"
    """
import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"]

    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        if self.name.startswith("slow"):
            time.sleep(SLOW)
        print(f"{self.name} got {len(requests)}: {tensors[0].ravel()[:1].tolist()}", flush=True)
        if b"refuse" in tensors[0].ravel()[:1]:
            raise ValueError("asked to refuse")
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", tensor)]) for tensor in tensors]
"""
)
FLOATS = (-1, 3)
PAIR = SignatureSpec.model_validate_json(
    json.dumps(
        {
            "inputs": [{"name": "x", "datatype": "FP32", "dims": [-1, -1]}, {"name": "t", "datatype": "BYTES", "dims": [-1, 3]}],
            "outputs": [{"name": "y", "datatype": "FP32", "dims": [-1, -1]}],
        }
    )
)
IMAGE = (-1, 3, 224, 224)
ONE = {"instances": {"count": 1}}
BATCHES = {"maxBatchSize": 8}
POLICY = {"maxSize": 7, "timeoutMicroseconds": 9_000_000, "timeoutAction": "delay", "allowTimeoutOverride": True}
RESOURCES = [{"name": "R1", "count": 4, "available": 8}, {"name": "R2", "count": 1, "scope": "global"}]
# What a person may write, each key at least once.
ACCEPTED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "half": {"instances": {}},
    "copies": {"instances": {"count": 2}},
    "groups": {"instances": {"count": 1, "further": [{"count": 1}]}},
    "batch": {"batching": BATCHES},
    "alone": {"batching": {**BATCHES, "dynamic": False}},
    "preferred": {"batching": {"maxBatchSize": 32, "preferredSizes": [4, 8, 16], "maxQueueDelayMicroseconds": 50_000}},
    "throughput": {"batching": "throughput"},
    "ordered": {"batching": {**BATCHES, "preserveOrdering": True}},
    "ordered-reject": {"batching": {**BATCHES, "preserveOrdering": True, "queue": {"timeoutMicroseconds": 60_000_000}}},
    "ordered-level": {"batching": {**BATCHES, "preserveOrdering": True, "priorities": {"levels": 1}}},
    "queue": {"batching": {**BATCHES, "queue": POLICY}},
    "override": {"batching": {**BATCHES, "queue": {"timeoutAction": "delay", "allowTimeoutOverride": True}}},
    "levels": {"batching": {**BATCHES, "priorities": {"levels": 2}}},
    "levels-queues": {
        "batching": {**BATCHES, "queue": {"maxSize": 3}, "priorities": {"levels": 3, "default": 2, "queues": [{"level": 3, **POLICY}]}}
    },
    "direct": {"sequence": {"strategy": "direct"}},
    "direct-batch": {
        "batching": BATCHES,
        "sequence": {"strategy": "direct", "maxIdleMicroseconds": 5_000_000, "minimumSlotUtilizationPercent": 50, "maxQueueDelayMicroseconds": 100},
    },
    "oldest": {"sequence": {"strategy": "oldest", "maxCandidateSequences": 4}},
    "oldest-batch": {
        "batching": BATCHES,
        "sequence": {
            "strategy": "oldest",
            "maxCandidateSequences": 64,
            "preferredSizes": [2, 8],
            "maxQueueDelayMicroseconds": 10,
            "preserveOrdering": True,
        },
    },
    "cache": {"responseCache": True},
    "cache-batch": {"responseCache": True, "batching": BATCHES},
    "limiter": {"rateLimiter": {"priority": 2}},
    "limiter-resources": {"rateLimiter": {"resources": RESOURCES}, "instances": {"count": 2}},
    "limiter-sequence": {"rateLimiter": {"resources": RESOURCES[:1]}, "sequence": {"strategy": "direct"}},
    "warm-zero": {"warmup": [{"inputs": [{"name": "x", "dims": [2, 3]}]}]},
    "warm-random": {"batching": BATCHES, "warmup": [{"batchSize": 8, "count": 2, "inputs": [{"name": "x", "dims": [3], "data": "random"}]}]},
    "graph-level": {"batching": BATCHES, "optimization": {}},
    "everything": {
        "batching": {**BATCHES, "preferredSizes": [4], "queue": POLICY, "priorities": {"levels": 2, "queues": [{"level": 1, "maxSize": 9}]}},
        "responseCache": True,
        "rateLimiter": {"resources": RESOURCES},
        "warmup": [{"batchSize": 4, "inputs": [{"name": "x", "dims": [3]}]}],
    },
}
BASE = 'backend: "python" {batch} input {{ name: "x" data_type: TYPE_FP32 dims: 3 }} output {{ name: "y" data_type: TYPE_FP32 dims: 3 }} '
# What our rules refuse, written by hand past them: Triton's own words, so that no rule is stricter than it must be.
REFUSED = {
    "above-largest": ("max_batch_size: 8 dynamic_batching { preferred_batch_size: 16 }", "preferred size must be <= max batch size"),
    "no-level": (
        "max_batch_size: 8 dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
        "default priority level must be in range [1, 2]",
    ),
    "no-default": ("max_batch_size: 8 dynamic_batching { priority_levels: 2 }", "default priority level must be in range [1, 2]"),
    "no-queue": (
        "max_batch_size: 8 dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} } }",
        "priority queue policy must have priority level in range [1, 2]",
    ),
    "order-levels": (
        "max_batch_size: 8 dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }",
        "Only one priority level is allowed when 'preserve_ordering' is true",
    ),
    "order-delay": (
        "max_batch_size: 8 dynamic_batching { preserve_ordering: true default_queue_policy { default_timeout_microseconds: 1 timeout_action: DELAY } }",
        "can not have DELAY as timeout action",
    ),
    "cached-sequence": ("sequence_batching {} response_cache { enable: true }", "Response Cache does not currently support model"),
    "cached-decoupled": ("model_transaction_policy { decoupled: true } response_cache { enable: true }", "'decoupled' transaction policy"),
    "oldest-above": (
        "max_batch_size: 8 sequence_batching { oldest { max_candidate_sequences: 1 preferred_batch_size: 9 } }",
        "sequence batching preferred batch size must be <= max batch",
    ),
    "no-file": (
        "model_warmup { name: 'w' batch_size: 1 inputs { key: 'x' value { data_type: TYPE_FP32 dims: 3 input_data_file: 'gone' } } }",
        "failed to open text file",
    ),
}


def published(name: str, dims: tuple[int, ...] = FLOATS, datatype: str = "FP32", **values: Any) -> ModelManifest:
    """A published model of this name that answers with its input."""
    signature = SignatureSpec.model_validate_json(
        json.dumps({"inputs": [{"name": "x", "datatype": datatype, "dims": dims}], "outputs": [{"name": "y", "datatype": datatype, "dims": dims}]})
    )
    return model_manifest("magika").model_copy(update={"name": name, "signature": signature, "check": None, **values})


def write(repository: Path, manifest: ModelManifest, values: dict[str, Any]) -> ServingSpec:
    """The model with the config that a stack with these keys renders, and the files it is warmed up with."""
    serving = ServingSpec.model_validate_json(json.dumps(values))
    write_model(repository, manifest.name, render_config(manifest, 1, serving, "cpu"), {"model.py": IDENTITY})
    for file, content in warmup_files(manifest, serving.warmup).items():
        path = repository / manifest.name / WARMUP_FOLDER / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return serving


def generated() -> dict[str, dict[str, Any]]:
    """Combinations of the accepted keys that nobody chose, the same in every run: those that the rules let through."""
    pick = random.Random(1)  # noqa: S311  a choice that is the same in every run
    found: list[dict[str, Any]] = []
    while len(found) < GENERATED:
        values = {key: pick.choice([entry[key] for entry in ACCEPTED.values() if key in entry]) for key in KEYS if pick.random() < HALF}
        try:
            serving = ServingSpec.model_validate_json(json.dumps(values))
        except ValidationError:
            continue
        if len(values) > 1 and values not in found and not list(serving_faults(published("generated"), serving, "cpu")):
            found.append(values)
    return {f"generated-{number}": values for number, values in enumerate(found)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProcess]:
    """Every config in one server, with the arguments that a pod with a cache and a rate limiter gets."""
    folder = tmp_path_factory.mktemp("configs")
    repository = folder / "models"
    limiters = [
        serving.rate_limiter for name, values in ACCEPTED.items() if (serving := write(repository, published(name), ONE | values)).rate_limiter
    ]
    for name, values in generated().items():
        write(repository, published(name), values)
    for name, queue in (("slow-full", {"maxSize": 1}), ("slow-late", {"timeoutMicroseconds": 1000})):
        write(repository, published(name), {**ONE, "batching": {"maxBatchSize": 1, "queue": queue}})
    write(repository, published("image", IMAGE), {**ONE, "batching": BATCHES})
    greeting = CheckSpec(inputs={"x": "hello"}, output="y", expected="hello")
    write(repository, published("warm", (-1, 1), "BYTES", check=greeting), {**ONE, "batching": BATCHES, "warmup": [{"batchSize": 2, "count": 2}]})
    pair = CheckSpec(inputs={"x": [[1, 2.5]], "t": [["a", "b", "c"]]}, output="y", expected=[[1, 2.5]])
    write(repository, published("warm-pair", (-1, -1), signature=PAIR, check=pair), {**ONE, "batching": BATCHES, "warmup": [{"batchSize": 2}]})
    for name, (text, _) in REFUSED.items():
        write_model(repository, name, f'name: "{name}" {BASE.format(batch="")} {text}', {"model.py": IDENTITY})
    arguments = build_arguments(plan({"responseCacheMib": 16, "memoryMib": 2048}))
    chosen = [argument for argument in arguments if argument.startswith("--cache-config")]
    limits = next(limiter.server_arguments() for limiter in limiters if limiter.resources)
    with TritonProcess(
        repository=repository,
        arguments=[*chosen, *limits, "--exit-on-error=false", "--strict-readiness=false"],
        shm_mib=4096,
        log=folder / "triton.log",
    ) as triton:
        triton.wait_ready(240)
        yield triton


def test_every_accepted_config_loads_and_answers(server: TritonProcess) -> None:
    found = {name: reason for name, (state, reason) in states(server).items() if state == "READY" or name in ACCEPTED or name.startswith("generated")}
    assert {name: reason for name, reason in found.items() if reason} == {}
    assert sum(name.startswith("generated") for name in found) == GENERATED
    for name, values in {**ACCEPTED, **generated()}.items():
        sequence = {"sequence_id": 1, "sequence_start": True, "sequence_end": True} if "sequence" in values else {}
        assert outputs(infer(server, name, tensor("x", "FP32", [1, 3], [1, 2, 3]), **sequence)) == {"y": [1, 2, 3]}, name


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_rules_refuse_triton_does_not_load(server: TritonProcess, name: str) -> None:
    assert states(server)[name][0] != "READY"
    [reason, *_] = [line for line in server.log.read_text().splitlines() if f"'{name}'" in line and line.startswith("E")]
    assert REFUSED[name][1] in reason


def test_a_batch_is_accepted_and_a_tensor_without_the_batch_axis_is_answered_by_400(server: TritonProcess) -> None:
    """triton-inference-server/server#1338: the batch axis is counted once, in max_batch_size."""
    rows = [0.0] * (3 * 224 * 224)
    assert infer(server, "image", tensor("x", "FP32", [4, 3, 224, 224], rows * 4)).status_code == httpx.codes.OK
    refused = infer(server, "image", tensor("x", "FP32", [3, 224, 224], rows))
    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert "unexpected shape" in refused.json()["error"]


@pytest.mark.parametrize(("model", "reason"), [("slow-full", "Exceeds maximum queue size"), ("slow-late", "Request timeout expired")])
def test_requests_beyond_the_queue_or_its_time_are_refused_and_the_others_answered(server: TritonProcess, model: str, reason: str) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda value: infer(server, model, tensor("x", "FP32", [1, 3], [value] * 3)), range(AT_ONCE)))
    refused = [answer for answer in answers if answer.status_code != httpx.codes.OK]
    assert 0 < len(refused) < AT_ONCE
    assert {answer.status_code for answer in refused} == {httpx.codes.SERVICE_UNAVAILABLE}
    assert all(reason in answer.json()["error"] for answer in refused)


def test_an_equal_request_is_answered_from_the_cache(server: TritonProcess) -> None:
    for value in (7, 7, 8):
        outputs(infer(server, "cache-batch", tensor("x", "FP32", [1, 3], [value] * 3)))
    [stats] = httpx.get(f"{server.http}/v2/models/cache-batch/stats").json()["model_stats"]
    assert stats["inference_stats"]["cache_hit"]["count"] == 1


def test_a_model_has_answered_its_check_sample_before_it_is_ready(server: TritonProcess) -> None:
    log = server.log.read_text(errors="replace")
    assert log.count("warm got 2: [b'hello']") == 2
    assert log.count("warm-pair got 2: [1.0]") == 1


def test_a_model_that_does_not_answer_its_check_sample_is_never_ready(tmp_path: Path) -> None:
    """Triton 2.51 says why in most runs; in some it dies of the failed warm-up, which fails a rollout as well."""
    repository = tmp_path / "models"
    refusing = CheckSpec(inputs={"x": "refuse"}, output="y", expected="refuse")
    write(repository, published("refused", (-1, 1), "BYTES", check=refusing), {**ONE, "warmup": [{}]})
    arguments = ["--exit-on-error=false", "--strict-readiness=false"]
    with TritonProcess(repository=repository, arguments=arguments, log=tmp_path / "triton.log") as triton:
        try:
            triton.wait_ready()
        except TritonError:
            assert triton.returncode == -signal.SIGSEGV
        else:
            state, reason = states(triton)["refused"]
            assert state == "UNAVAILABLE"
            assert "failed to run warmup sample 'sample-0'" in reason
    assert "successfully loaded 'refused'" not in triton.log.read_text()
