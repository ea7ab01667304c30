"""Shared memory of Python models: what a container has without a volume is too little, what the rule says is enough."""

from pathlib import Path

import pytest

from components.core.requests import DEFAULT_LIMITS
from components.inference.memory import plan_shared_memory
from components.inference.spec import ModelFootprint, ServerSpec
from tests.serving.sleepy import sleepy_repository
from tools.triton_process import TritonError, TritonProcess

pytestmark = pytest.mark.serving

NAMES = tuple(f"model-{number}" for number in range(6))
INSTANCES = 2
PER_INSTANCE_MIB = 64
# Of a container's /dev/shm, unless a volume is mounted there.
CONTAINER_DEFAULT_MIB = 64
ARGUMENTS = (f"--backend-config=python,shm-default-byte-size={PER_INSTANCE_MIB * 1024 * 1024}",)
FOOTPRINT = ModelFootprint(instances=INSTANCES, memory_mib=64, shared_memory_mib=0, load_budget_seconds=60, python_backend="python")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    for parent in (tmp_path, tmp_path.parent):
        parent.chmod(0o755)
    return sleepy_repository(folder, names=NAMES, instances=INSTANCES)


def test_64_mib_are_too_little_for_the_second_model(repository: Path, tmp_path: Path) -> None:
    """triton-inference-server/server#4869, #3678, #5868."""
    with TritonProcess(repository=repository, arguments=ARGUMENTS, shm_mib=CONTAINER_DEFAULT_MIB, log=tmp_path / "triton.log") as triton:
        with pytest.raises(TritonError):
            triton.wait_ready(120)
        assert "No space left on device" in triton.log.read_text()


def test_what_the_rule_says_is_enough_for_all_of_them(repository: Path, tmp_path: Path) -> None:
    """12 instances of 64 MiB and headroom."""
    server = ServerSpec(shared_memory_mib_per_instance=PER_INSTANCE_MIB, memory_mib=4096)
    size = plan_shared_memory("models", server, [FOOTPRINT] * len(NAMES), DEFAULT_LIMITS)
    assert size is not None
    assert size >= len(NAMES) * INSTANCES * PER_INSTANCE_MIB
    with TritonProcess(repository=repository, arguments=ARGUMENTS, shm_mib=size, log=tmp_path / "triton.log") as triton:
        triton.wait_ready(120)
        assert all(triton.answers(f"/v2/models/{name}/ready") for name in NAMES)
