"""Memory of a server: its models, what Python models pass tensors through, and the requests under way.

Shared memory: Python models pass tensors through /dev/shm, of which a container has 64 MiB unless a volume is mounted there.

Requests: measured on Triton 2.51 with a Python model, batches of 16, requests of 1 to 16 MiB, 32 to 256 at a time, over HTTP and gRPC. Every request
under way is held once, from its first byte to its answer, and a batch that runs up to three times more (request, slices of it, the model's own
objects), beside its copy in shared memory.

Rows: what a model makes of a row (a picture that is unpacked, scores of every character) may weigh far more than the request. The model is published
with that, for the largest row it takes: memory and shared memory of a row at work, and what the server keeps of a row that waits for the model.
"""

from collections.abc import Sequence

from components.core.requests import RequestLimits
from components.errors import ManifestError
from components.inference.spec import ModelFootprint, ServerSpec

# Control structures of the backend and growth of single instances by larger tensors (triton-inference-server/python_backend#291).
SHM_HEADROOM_MIB = 64
# The server without models, its threads and its listeners.
SERVER_MIB = 64
COPIES_OF_A_BATCH = 3


def shm_mib_per_instance(server: ServerSpec, footprints: Sequence[ModelFootprint]) -> int | None:
    """What each instance of a Python model starts with, one size for all of a server: the largest of the stack's and the models' own needs.

    None when no model has a backend written in Python.
    """
    needs = [footprint.shared_memory_mib for footprint in footprints if footprint.python_backend]
    return max(server.shared_memory_mib_per_instance, *needs) if needs else None


def plan_shared_memory(model: str, server: ServerSpec, footprints: Sequence[ModelFootprint], limits: RequestLimits) -> int | None:
    """Size of the volume at /dev/shm in MiB, None when no volume is needed; ManifestError when the one that is declared is too small.

    An instance grows to hold the largest batch it runs, and never shrinks; where that finds no room, every request of the batch is answered 500.
    """
    per_instance = shm_mib_per_instance(server, footprints)
    python = [footprint for footprint in footprints if footprint.python_backend]
    grown = sum(each.instances * max(per_instance or 0, _grown(model, each, limits)) for each in python)
    needed = 0 if per_instance is None else grown + SHM_HEADROOM_MIB
    declared = server.shared_memory_mib
    if declared is not None and declared < needed:
        raise ManifestError(
            f"model {model!r}: server.sharedMemoryMib {declared} is too small for {sum(each.instances for each in python)} Python instances, "
            f"which need {needed} MiB",
            hint=f"set sharedMemoryMib to at least {needed}, or drop it",
            keys=("server", "sharedMemoryMib"),
        )
    return (needed if declared is None else declared) or None


def _grown(model: str, footprint: ModelFootprint, limits: RequestLimits) -> int:
    return footprint.max_batch * limits.max_request_mib + _rows(model, footprint) * footprint.shared_memory_mib_per_row


def _rows(model: str, footprint: ModelFootprint) -> int:
    """Rows that an instance runs at once. ManifestError where each takes memory and a request may have any number of them."""
    if footprint.max_rows is not None:
        return footprint.max_rows
    weights = {
        "memoryMibPerRow": footprint.memory_mib_per_row,
        "sharedMemoryMibPerRow": footprint.shared_memory_mib_per_row,
        "waitingMibPerRow": footprint.waiting_mib_per_row,
    }
    if any(weights.values()):
        listed = ", ".join(f"{key} {size}" for key, size in weights.items() if size)
        raise ManifestError(
            f"model {model!r}: batching.maxBatchSize 0 lets a request have any number of rows, and model.yaml says what each takes: {listed}",
            hint="set batching.maxBatchSize to at least 1",
            keys=("batching", "maxBatchSize"),
        )
    return 1


def memory_parts(model: str, server: ServerSpec, footprints: Sequence[ModelFootprint], limits: RequestLimits, shm_mib: int | None) -> dict[str, int]:
    """What a server needs at the limit, in MiB: `max_in_flight` requests of the largest size, and every instance at work on a full batch of them.

    The volume at /dev/shm is memory and is charged to the container, beside what the models use (triton-inference-server/server#4869).
    """
    rows = [(_rows(model, each), each) for each in footprints]
    batched = min(sum(each.instances * each.max_batch for each in footprints), limits.max_in_flight)
    return {
        "models (memoryMib of model.yaml)": sum(each.instances * each.memory_mib for each in footprints),
        "rows at work (memoryMibPerRow of model.yaml x batching.maxBatchSize)": sum(
            each.instances * count * each.memory_mib_per_row for count, each in rows
        ),
        "rows that wait (waitingMibPerRow of model.yaml x batching.maxBatchSize x routing.maxInFlight)": sum(
            limits.max_in_flight * count * each.waiting_mib_per_row for count, each in rows
        ),
        "shared memory": shm_mib or 0,
        "response cache and pinned memory (server.responseCacheMib, server.pinnedMemoryMib)": (server.response_cache_mib or 0)
        + server.pinned_pool_mib,
        f"{limits.max_in_flight} requests (routing.maxInFlight) of {limits.max_request_mib} MiB (routing.maxRequestMib)": (
            limits.max_in_flight + COPIES_OF_A_BATCH * batched
        )
        * limits.max_request_mib,
        "the server itself": SERVER_MIB,
    }


def check_memory(model: str, server: ServerSpec, footprints: Sequence[ModelFootprint], limits: RequestLimits, shm_mib: int | None) -> None:
    """ManifestError when models, or requests that the gateway lets pass, could end the server for want of memory."""
    parts = memory_parts(model, server, footprints, limits, shm_mib)
    needed = sum(parts.values())
    if needed > server.memory_mib:
        listed = " + ".join(f"{size} for {name}" for name, size in parts.items() if size)
        raise ManifestError(
            f"model {model!r}: server.memoryMib {server.memory_mib} is too small: {listed} = {needed} MiB",
            hint=f"set server.memoryMib to at least {needed}, or lower instances.count, batching.maxBatchSize or the limits of routing",
            keys=("server", "memoryMib"),
        )
