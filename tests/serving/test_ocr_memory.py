"""The heaviest requests of text recognition that the gateway lets pass: all answered, in exactly the memory that the rule asks for."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from PIL import Image

from components.core.requests import MIB, RequestLimits
from components.inference.memory import memory_parts
from components.inference.plan import plan_versions
from components.inference.pod_manifest import build_arguments
from stacks.config import ModelSpec
from stacks.models import served_versions
from tests.serving.lines import png
from tests.serving.memory import peak, resident_mib
from tests.serving.repository import deploy
from tools.cluster.cgroups import limited_memory
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

LIMITS = RequestLimits(max_request_mib=2, max_in_flight=16)
# As serving/README.md adds the ensemble to a stack.
BATCH = 4
# The widest line with the most pixels, the same in a width of its own, and one that is small but for its width: what differs in width runs in turn.
SIZES = ((16_640, 250), (12_000, 300), (3_200, 48))
CONTENTS = [png(Image.new("RGBA", size)) for size in SIZES]
CALLERS = 6


@contextmanager
def served(folder: Path, model: str, batch: int) -> Iterator[tuple[TritonProcess, int]]:
    """The model in a container with what the rule says it needs, in MiB, and not a byte more."""
    spec = ModelSpec.model_validate(
        {"version": 1, "batching": {"maxBatchSize": batch}, "instances": {"count": 1}, "slo": {"p99Ms": 2000}, "server": {"memoryMib": 8192}}
    )
    [plan] = plan_versions(spec.identity(model, "inference"), spec.server, None, served_versions(model, spec, "cpu"), limits=LIMITS)
    needed = sum(memory_parts(model, spec.server, [each.footprint for each in plan.models], LIMITS, plan.shm_mib).values())
    sizes = [argument for argument in build_arguments(plan) if argument.startswith("--backend-config=")]
    with (
        limited_memory(f"ocr{os.getpid() % 10**6}", needed) as group,
        deploy(folder, model, 1, spec, arguments=sizes, shm_mib=plan.shm_mib or 0, group=group) as server,
    ):
        server.wait_ready()
        yield server, needed
        assert server.returncode is None


def ask(server: TritonProcess, model: str, contents: list[bytes]) -> int:
    """Number of rows in the answer."""
    assert sum(map(len, contents)) < LIMITS.max_request_mib * MIB
    tensor = triton.InferInput("image", [len(contents), 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[content] for content in contents], dtype=np.object_))
    with triton.InferenceServerClient(server.grpc) as client:
        answer = client.infer(model, [tensor], client_timeout=240)
    return int(answer.get_response().outputs[0].shape[0])


@pytest.mark.timeout(300)
def test_batches_of_the_heaviest_pictures_are_answered_within_the_memory_of_the_rule(tmp_path: Path) -> None:
    """A picture of 17 kB becomes 11 MiB of numbers between the steps, and took 60 of the network's; sized by requests, it was answered 500."""
    with served(tmp_path, "ocr", BATCH) as (server, needed):
        with peak(lambda: resident_mib(server)) as seen, ThreadPoolExecutor(CALLERS) as callers:
            rows = list(callers.map(lambda number: ask(server, "ocr", [CONTENTS[number % len(CONTENTS)]] * BATCH), range(CALLERS)))
        assert rows == [BATCH] * CALLERS
        assert needed / 3 < max(seen) < needed, f"{max(seen):.0f} MiB, the rule says {needed}"


@pytest.mark.timeout(120)
def test_sixteen_of_the_largest_pictures_do_not_end_the_server(tmp_path: Path) -> None:
    """They fit into one request, and were unpacked side by side."""
    with served(tmp_path, "ocr_decode", 16) as (server, needed):
        with peak(lambda: resident_mib(server)) as seen, ThreadPoolExecutor(3) as callers:
            assert list(callers.map(lambda content: ask(server, "ocr_decode", [content] * 16), CONTENTS)) == [16] * 3
        assert max(seen) < needed, f"{max(seen):.0f} MiB, the rule says {needed}"
