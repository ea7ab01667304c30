"""Shared memory of a server: Python models pass tensors through /dev/shm, of which a container has 64 MiB unless a volume is mounted there."""

from collections.abc import Sequence

from components.errors import ManifestError
from components.inference.spec import ModelFootprint, ServerSpec

# Control structures of the backend and growth of single instances by larger tensors (triton-inference-server/python_backend#291).
SHM_HEADROOM_MIB = 64


def shm_mib_per_instance(server: ServerSpec, footprints: Sequence[ModelFootprint]) -> int | None:
    """What each instance of a Python model starts with, one size for all of a server: the largest of the stack's and the models' own needs.

    None when no model has a backend written in Python.
    """
    needs = [footprint.shared_memory_mib for footprint in footprints if footprint.python_backend]
    return max(server.shared_memory_mib_per_instance, *needs) if needs else None


def plan_shared_memory(model: str, server: ServerSpec, footprints: Sequence[ModelFootprint]) -> int | None:
    """Size of the volume at /dev/shm in MiB, None when no volume is needed; ManifestError when the container's memory cannot hold it.

    The volume is memory and is charged to the container, beside what the models use (triton-inference-server/server#4869).
    """
    per_instance = shm_mib_per_instance(server, footprints)
    instances = sum(footprint.instances for footprint in footprints if footprint.python_backend)
    needed = 0 if per_instance is None else instances * per_instance + SHM_HEADROOM_MIB
    declared = server.shared_memory_mib
    if declared is not None and declared < needed:
        raise ManifestError(
            f"model {model!r}: server.sharedMemoryMib {declared} is too small for {instances} Python instances, which need {needed} MiB",
            hint=f"set sharedMemoryMib to at least {needed}, or drop it",
            keys=("server", "sharedMemoryMib"),
        )
    size = needed if declared is None else declared
    models = sum(footprint.instances * footprint.memory_mib for footprint in footprints)
    buffers = (server.response_cache_mib or 0) + (server.pinned_memory_mib or 0)
    if size + models + buffers > server.memory_mib:
        beside = f" and {buffers} MiB of response cache and pinned memory" if buffers else ""
        raise ManifestError(
            f"model {model!r}: server.memoryMib {server.memory_mib} cannot hold {models} MiB of models and {size} MiB of shared memory{beside}",
            hint=f"set server.memoryMib to at least {size + models + buffers}, or lower instances.count",
            keys=("server", "memoryMib"),
        )
    return size or None
