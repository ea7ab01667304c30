"""What a person says about the front of a model."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from components.core.front import FrontLimitsSpec

# Python, gRPC and numpy as they stand, idle (73 MiB resident), with room for their arenas under load.
BASE_MIB = 128
# A body is held as it came, as a tensor, as a message and as that message's bytes.
COPIES = 4


class FrontSpec(FrontLimitsSpec):
    """An HTTP front beside the model's own protocol: files in, JSON out, with limits that hold. Its limits are per pod."""

    replicas: Annotated[int, Field(ge=1, le=100, description="Pods of the front.")] = 1
    cpu_request: Annotated[float, Field(ge=0.001, le=256, description="CPU cores reserved.")] = 0.1
    cpu_limit: Annotated[float, Field(ge=0.001, le=256, description="CPU cores at most; one process uses one.")] = 1.0
    memory_mib: Annotated[int, Field(ge=BASE_MIB, le=65_536, description="Memory reserved and at most, in MiB.")] = 256

    @property
    def body_memory_mib(self) -> int:
        """Bodies that may be held at once, half of it by batches; a request that would exceed them is answered 429."""
        return (self.memory_mib - BASE_MIB) // COPIES

    @model_validator(mode="after")
    def _limits_are_in_order(self) -> Self:
        if self.cpu_request > self.cpu_limit:
            raise ValueError(f"cpuRequest {self.cpu_request:g} is above cpuLimit {self.cpu_limit:g}")
        if self.body_memory_mib < 2 * self.max_request_mib:
            least = BASE_MIB + COPIES * 2 * self.max_request_mib
            raise ValueError(
                f"memoryMib {self.memory_mib} cannot hold an item of a batch beside a request, of maxRequestMib {self.max_request_mib} each: the process "
                f"takes {BASE_MIB} MiB and a body is held {COPIES} times; set memoryMib to at least {least}, or lower maxRequestMib"
            )
        return self
