"""GPU node pool: what a person says about a group of equal nodes, whoever makes them (AWS, Karpenter, the simulator)."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from components.core.accelerators import MIG_GEOMETRY, Accelerator, mig_slices
from components.core.model_repository import ModelCacheSpec
from components.core.spec import Spec

# The kubelet refuses a taint or label whose parts break these rules; here they fail before anything is made.
LabelKey = Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")]
LabelValue = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")]


class TaintEffect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class TaintSpec(Spec):
    """Keeps other workloads off the nodes; servers of the pool tolerate it."""

    key: LabelKey
    value: LabelValue = ""
    effect: Annotated[TaintEffect, Field(strict=False)] = TaintEffect.NO_SCHEDULE


class NoSharingSpec(Spec):
    """A card belongs to one pod."""

    mode: Literal["none"] = "none"


class TimeSlicingSpec(Spec):
    """Pods take turns on a card; nothing isolates their memory."""

    mode: Literal["time-slicing"]
    replicas: Annotated[int, Field(ge=2, le=64, description="Slots per card.")]
    rename: Annotated[bool, Field(description="Offer the slots as nvidia.com/gpu.shared.")] = False


class MpsSpec(Spec):
    """Pods run side by side on a card through CUDA MPS, each with an equal part of its memory."""

    mode: Literal["mps"]
    # 48 client contexts per device from Volta on (NVIDIA Multi-Process Service documentation, "Limitations").
    replicas: Annotated[int, Field(ge=2, le=48, description="Slots per card.")]
    rename: Annotated[bool, Field(description="Offer the slots as nvidia.com/gpu.shared.")] = False


class MigProfileSpec(Spec):
    """MIG devices of one kind on every card of the pool."""

    profile: Annotated[str, Field(description="As nvidia-smi names it, e.g. 1g.10gb.")]
    count: Annotated[int, Field(ge=1, le=7, description="Devices of this kind per card.")]


class MigSpec(Spec):
    """Cards are divided in hardware; every device is isolated."""

    mode: Literal["mig"]
    strategy: Literal["single", "mixed"]
    profiles: Annotated[tuple[MigProfileSpec, ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _profiles_fit_the_strategy(self) -> Self:
        names = [entry.profile for entry in self.profiles]
        if len(set(names)) != len(names):
            raise ValueError(f"profiles {names}: a profile is listed once, with its count")
        # A heterogeneous card under `single` makes the device plugin fail at its start (NVIDIA/k8s-device-plugin#397).
        if self.strategy == "single" and len(names) > 1:
            raise ValueError(f"strategy single takes one profile for the whole node, got {names}; use strategy mixed or drop the others")
        return self


SharingSpec = Annotated[NoSharingSpec | TimeSlicingSpec | MpsSpec | MigSpec, Field(discriminator="mode")]


class GpuNodePoolSpec(Spec):
    """A pool of nodes with the same cards."""

    accelerator: Annotated[Accelerator, Field(strict=False)]
    cards_per_node: Annotated[int, Field(ge=1, le=16)]
    card_memory_mib: Annotated[int, Field(ge=1024, le=4 * 1024 * 1024, description="Memory of one card, in MiB.")]
    min_nodes: Annotated[int, Field(ge=0, le=1000)]
    max_nodes: Annotated[int, Field(ge=1, le=1000)]
    desired_nodes: Annotated[int | None, Field(ge=0, description="Nodes at creation; the node autoscaler owns the number afterwards.")] = None
    zones: Annotated[tuple[str, ...], Field(strict=False, description="Availability zones; empty: those of the cluster.")] = ()
    taints: Annotated[tuple[TaintSpec, ...], Field(strict=False)] = ()
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, description="Labels of the nodes; servers of the pool select by them.")
    sharing: SharingSpec = NoSharingSpec()
    model_cache: Annotated[ModelCacheSpec | None, Field(description="Folder of the nodes that keeps fetched model files; absent: none.")] = None

    @model_validator(mode="after")
    def _sizes_are_in_order(self) -> Self:
        if self.min_nodes > self.max_nodes:
            raise ValueError(f"minNodes {self.min_nodes} is above maxNodes {self.max_nodes}")
        if self.desired_nodes is not None and not self.min_nodes <= self.desired_nodes <= self.max_nodes:
            raise ValueError(f"desiredNodes {self.desired_nodes} is outside minNodes {self.min_nodes} to maxNodes {self.max_nodes}")
        return self

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        if len(set(self.zones)) != len(self.zones):
            raise ValueError(f"zones {list(self.zones)}: a zone is listed once")
        taints = [(taint.key, taint.effect.value) for taint in self.taints]
        if len(set(taints)) != len(taints):
            raise ValueError(f"taints {taints}: key and effect together are listed once")
        return self

    @model_validator(mode="after")
    def _card_holds_the_mig_devices(self) -> Self:
        if not isinstance(self.sharing, MigSpec):
            return self
        slices = [(entry.count, mig_slices(entry.profile, self.accelerator, self.card_memory_mib)) for entry in self.sharing.profiles]
        from_card = MIG_GEOMETRY[self.accelerator]
        compute = sum(count * one.compute for count, one in slices)
        memory = sum(count * one.memory for count, one in slices)
        if compute > from_card.compute_slices or memory > from_card.memory_slices:
            raise ValueError(
                f"the profiles take {compute} compute and {memory} memory slices, and a card of accelerator {self.accelerator.value} "
                f"has {from_card.compute_slices} and {from_card.memory_slices}; lower the counts"
            )
        return self
