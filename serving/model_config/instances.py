"""Instance groups: copies of a model inside one server, and the rate at which they may run."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from components.core.faults import Fault, refuse
from components.core.spec import Spec

GpuId = Annotated[int, Field(ge=0, le=15)]


class InstanceGroupSpec(Spec):
    """Equal copies of a model."""

    count: Annotated[
        int | None,
        Field(ge=1, le=64, description="Copies per GPU (kind gpu; absent: 1) or per server (kind cpu; absent: half of server.cpuLimit, at least 1)."),
    ] = None
    kind: Annotated[Literal["cpu", "gpu"], Field(description="What the copies run on.")] = "cpu"
    gpus: Annotated[
        tuple[GpuId, ...], Field(strict=False, description="GPUs of the pod, counted from 0, that get `count` copies each; empty: all of them.")
    ] = ()
    profiles: Annotated[
        tuple[Annotated[int, Field(ge=0, le=1000)], ...],
        Field(strict=False, description="Optimisation profiles of a TensorRT plan, by index; empty: the first."),
    ] = ()

    @model_validator(mode="after")
    def _gpus_belong_to_kind_gpu(self) -> Self:
        refuse(list(self._faults()))
        return self

    def _faults(self) -> Iterator[Fault]:
        for key, values in (("gpus", self.gpus), ("profiles", self.profiles)):
            if values and self.kind == "cpu":
                yield Fault((key,), f"{list(values)} is for copies on GPUs, and kind is cpu", f"set kind: gpu, or drop {key}")
            if len(set(values)) != len(values):
                yield Fault((key,), f"{list(values)}: each is named once; `count` says how many copies", f"write {sorted(set(values))}")

    def copies(self, cpu_cores: float) -> int:
        """Copies per GPU or per server. Half of the cores is the product's default: one copy computes while the other's request is read."""
        if self.count is not None:
            return self.count
        return 1 if self.kind == "gpu" else max(1, int(cpu_cores // 2))


class InstancesSpec(InstanceGroupSpec):
    """Copies of a model inside one server: one group, and further ones where GPUs differ."""

    further: Annotated[tuple[InstanceGroupSpec, ...], Field(strict=False, description="More groups, beside the first.")] = ()

    @property
    def groups(self) -> tuple[InstanceGroupSpec, ...]:
        return (self, *self.further)

    @property
    def on_gpu(self) -> bool:
        return any(group.kind == "gpu" for group in self.groups)

    @property
    def largest_gpu(self) -> int | None:
        """The highest GPU that is named, None where none is."""
        return max((gpu for group in self.groups for gpu in group.gpus), default=None)

    def per_pod(self, cpu_cores: float, gpus: int) -> int:
        """Copies that share the memory of a pod with `gpus` GPUs."""
        return sum(group.copies(cpu_cores) * _places(group, gpus) for group in self.groups)

    def per_card(self, gpus: int) -> int:
        """Copies on the fullest of a pod's `gpus` GPUs; their number on a GPU does not depend on cores."""
        on_gpu = [group for group in self.groups if group.kind == "gpu"]
        return max((sum(group.copies(0) for group in on_gpu if gpu in (group.gpus or range(gpus))) for gpu in range(gpus)), default=0)


def _places(group: InstanceGroupSpec, gpus: int) -> int:
    """How often Triton makes the group's copies: once per GPU, or once."""
    return 1 if group.kind == "cpu" else len(group.gpus) or gpus


class RateResourceSpec(Spec):
    """Something of which running copies take some, whatever it stands for; Triton compares names without case."""

    name: Annotated[str, Field(pattern="^[A-Za-z0-9_.-]{1,63}$")]
    count: Annotated[int, Field(ge=1, le=1_000_000, description="What one copy takes while it runs.")]
    scope: Annotated[Literal["device", "global"], Field(description="device: each GPU has its own; global: the server has one.")] = "device"
    available: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="What there is; absent: the most that one copy takes, so that copies take turns.")
    ] = None


class RateLimiterSpec(Spec):
    """When copies run: those that find their resources taken wait. Without it they run as requests come."""

    priority: Annotated[int, Field(ge=0, le=1000, description="Weight among copies that wait: 2 runs half as often as 1; 0 is 1.")] = 0
    resources: Annotated[tuple[RateResourceSpec, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _resources_suffice(self) -> Self:
        refuse(list(self._faults()))
        return self

    def _faults(self) -> Iterator[Fault]:
        names = [resource.name.lower() for resource in self.resources]
        if len(set(names)) != len(names):
            yield Fault(("resources",), f"names {names}: a resource is listed once", "join the entries of one name")
        for resource in self.resources:
            # Triton refuses to load a model whose copies could never run (rate_limiter.cc, "Resource count for ... is limited to").
            if resource.available is not None and resource.available < resource.count:
                reason = f"{resource.name}: available {resource.available} is below count {resource.count}, so that no copy could ever run"
                yield Fault(("resources",), reason, f"set available to at least {resource.count}, or lower count")

    def server_arguments(self) -> tuple[str, ...]:
        """What tritonserver has to be told: without its switch it ignores the limiter, and of resources, once one is told, the others count as none."""
        declared = (f"--rate-limit-resource={resource.name}:{resource.available or resource.count}" for resource in self.resources)
        return ("--rate-limit=execution_count", *declared)
