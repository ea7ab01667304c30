"""Simulated GPUs, as a person asks for them."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from components.core.accelerators import Accelerator
from components.core.node_pool import GpuNodePoolSpec
from components.core.spec import Spec


class SimulatedGpusSpec(Spec):
    """Cards that exist for the scheduler and the kubelet, on every node of a cluster without GPUs."""

    count: Annotated[int, Field(ge=1, le=16, description="Cards per node.")]
    memory_mib: Annotated[int, Field(ge=1024, le=1_048_576, description="Memory each card claims to have, in MiB.")] = 16_384

    numa_nodes: Annotated[int, Field(ge=1, le=16, description="NUMA nodes the cards are spread over, at most one per card.")] = 1

    @model_validator(mode="after")
    def _no_numa_node_is_empty(self) -> Self:
        if self.numa_nodes > self.count:
            raise ValueError(f"numaNodes {self.numa_nodes} is above count {self.count}: a NUMA node would have no card; lower numaNodes")
        return self

    def node_pool(self, nodes: int) -> GpuNodePoolSpec:
        """The cluster's nodes seen as a GPU pool of fixed size."""
        return GpuNodePoolSpec(
            accelerator=Accelerator.SIMULATED, cards_per_node=self.count, card_memory_mib=self.memory_mib, min_nodes=nodes, max_nodes=nodes
        )
