"""What a person says about the server of a model, and what the model says about itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import Field, model_validator

from components.core.rollout import ReplicaRange
from components.core.spec import Spec

# From the moment a pod is told to stop until proxies have learnt that it takes no new requests (triton-inference-server/server#6939).
MIN_PRE_STOP_SECONDS = 5
# 32 TiB, more than the largest machine of any cloud: beyond lies a slip of the hand.
MAX_MEMORY_MIB = 32 * 1024 * 1024
# What Triton 2.51 takes on a server with GPUs unless told otherwise (triton-inference-server/server src/command_line_parser.h and the help texts of
# --pinned-memory-pool-byte-size and --cuda-memory-pool-byte-size in command_line_parser.cc).
PINNED_MEMORY_MIB = 256
CUDA_MEMORY_POOL_MIB = 64


class ServerSpec(Spec):
    """The server of a model: size, time limits, GPUs. The same for every version."""

    replicas: Annotated[int, Field(ge=0, le=1000, description="Pods per version.")] = 1
    cpu_request: Annotated[float, Field(ge=0.001, le=256, description="CPU cores reserved.")] = 0.5
    cpu_limit: Annotated[float, Field(ge=0.001, le=256, description="CPU cores at most.")] = 2.0
    memory_mib: Annotated[
        int, Field(ge=128, le=MAX_MEMORY_MIB, description="Memory reserved and at most, in MiB; shared memory is charged to it.")
    ] = 1024
    max_request_seconds: Annotated[int, Field(ge=1, le=3600, description="Longest request that must survive the end of a pod.")] = 30
    pre_stop_seconds: Annotated[
        int, Field(ge=MIN_PRE_STOP_SECONDS, le=300, description="Time a stopping pod still takes requests, while proxies learn that it goes.")
    ] = MIN_PRE_STOP_SECONDS
    termination_grace_period_seconds: Annotated[
        int | None, Field(ge=1, le=7200, description="Time from the order to stop to SIGKILL; absent: as long as the two above need.")
    ] = None
    model_load_timeout_seconds: Annotated[
        int | None, Field(ge=1, le=7200, description="Longest model load that is no fault; absent: the load budget the model was published with.")
    ] = None
    node_provisioning_seconds: Annotated[
        int | None, Field(ge=0, le=3600, description="Time until a node is there and holds the image; absent: 600 with GPUs, 120 without.")
    ] = None
    shared_memory_mib_per_instance: Annotated[
        int, Field(ge=1, le=65_536, description="Shared memory that each instance of a Python model starts with, in MiB.")
    ] = 16
    shared_memory_mib: Annotated[
        int | None, Field(ge=1, description="Shared memory of the pod, in MiB; absent: what the Python instances need, and none without them.")
    ] = None
    gpus_per_replica: Annotated[int, Field(ge=0, le=16, description="GPU slots per pod.")] = 0
    node_pool: Annotated[str | None, Field(description="Node pool the pods run on; needed with GPUs.")] = None
    mig_profile: Annotated[str | None, Field(description="MIG device per pod, on a pool with several kinds.")] = None
    pinned_memory_mib: Annotated[
        int | None,
        Field(ge=0, le=MAX_MEMORY_MIB, description="Pinned memory for copies between host and GPUs, in MiB; absent: Triton's own default, 256."),
    ] = None
    cuda_memory_pool_mib: Annotated[
        int | None, Field(ge=0, le=MAX_MEMORY_MIB, description="GPU memory on each GPU for tensors, in MiB; absent: Triton's own default, 64.")
    ] = None
    response_cache_mib: Annotated[
        int | None, Field(ge=1, le=MAX_MEMORY_MIB, description="Memory for answers that are given again to equal requests, in MiB; absent: none.")
    ] = None
    log_verbose: Annotated[int, Field(ge=0, le=9, description="Verbosity of the server's log.")] = 0

    @property
    def pinned_pool_mib(self) -> int:
        """Pinned memory that the server takes of its container; none without GPUs."""
        if self.gpus_per_replica == 0:
            return 0
        return PINNED_MEMORY_MIB if self.pinned_memory_mib is None else self.pinned_memory_mib

    @property
    def cuda_pool_mib(self) -> int:
        """What the server's pool takes of each GPU; none without GPUs."""
        if self.gpus_per_replica == 0:
            return 0
        return CUDA_MEMORY_POOL_MIB if self.cuda_memory_pool_mib is None else self.cuda_memory_pool_mib

    @model_validator(mode="after")
    def _limits_are_in_order(self) -> Self:
        if self.cpu_request > self.cpu_limit:
            raise ValueError(f"cpuRequest {self.cpu_request:g} is above cpuLimit {self.cpu_limit:g}")
        if self.shared_memory_mib is not None and self.shared_memory_mib >= self.memory_mib:
            raise ValueError(
                f"sharedMemoryMib {self.shared_memory_mib} leaves nothing of memoryMib {self.memory_mib}: shared memory is charged to the container"
            )
        return self

    @model_validator(mode="after")
    def _gpus_come_from_a_pool(self) -> Self:
        if self.gpus_per_replica > 0 and self.node_pool is None:
            raise ValueError(f"gpusPerReplica {self.gpus_per_replica} needs nodePool, the pool that has the GPUs")
        if self.node_pool is not None and self.gpus_per_replica == 0:
            raise ValueError(f"nodePool {self.node_pool!r} is a pool of GPU nodes; set gpusPerReplica to at least 1, or drop nodePool")
        for key, value in (("pinnedMemoryMib", self.pinned_memory_mib), ("cudaMemoryPoolMib", self.cuda_memory_pool_mib)):
            if value is not None and self.gpus_per_replica == 0:
                raise ValueError(f"{key} {value} is for GPUs, and gpusPerReplica is 0; set gpusPerReplica and nodePool, or drop {key}")
        if self.mig_profile is not None and self.node_pool is None:
            raise ValueError(f"migProfile {self.mig_profile!r} needs nodePool, the pool that has the MIG devices")
        return self


@dataclass(frozen=True, kw_only=True)
class ModelFootprint:
    """What a published model version needs of its server; per instance unless the name says otherwise."""

    instances: int
    memory_mib: int
    shared_memory_mib: int
    load_budget_seconds: int
    max_batch: int = 1
    """Requests that an instance runs at once; several inputs of one request count once."""
    max_rows: int | None = 1
    """Rows that an instance runs at once, of one request or of several; None: a request may have any number."""
    memory_mib_per_row: int = 0
    shared_memory_mib_per_row: int = 0
    waiting_mib_per_row: int = 0
    """What the server keeps of a row that waits for this model, beside the request itself."""
    python_backend: str | None
    """Name of the backend when it is written in Python, and so passes tensors through shared memory."""
    instances_per_gpu: int = 0
    """On the GPU that has most of them."""
    gpu_memory_mib: int | None = None
    """None when the model was published without a word about it."""


# An ensemble only passes tensors on: its steps, which are models of the same server, are what needs something.
NO_FOOTPRINT = ModelFootprint(instances=0, memory_mib=0, shared_memory_mib=0, load_budget_seconds=0, python_backend=None)


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model that a server loads, in the one version that the text of its config.pbtxt names, and what that needs."""

    name: str
    version: int
    config_pbtxt: str
    size_bytes: int
    """Of its files together, as published."""
    files_sha256: str
    """Hash of its files, as serving/artefact.py makes it: what a store or a volume must hold under this number."""
    footprint: ModelFootprint
    warmup_files: Mapping[str, bytes] = field(default_factory=dict)
    """What its config.pbtxt warms it up with, by file name."""
    warnings: tuple[str, ...] = ()
    """What works, and yet is hardly meant; with the way out."""


@dataclass(frozen=True, kw_only=True)
class ModelVersion:
    """One version to serve: every model its server loads (of an ensemble: itself and its steps) and how many replicas."""

    version: int
    models: tuple[LoadedModel, ...]
    replicas: ReplicaRange
    server_arguments: tuple[str, ...] = ()
    """Without which the server would ignore a part of the configs."""

    @property
    def footprints(self) -> tuple[ModelFootprint, ...]:
        return tuple(model.footprint for model in self.models)
