"""Warm-up: requests that a model answers before it counts as loaded. One that it cannot answer fails the load, and thus the rollout.

Triton 2.51 sometimes dies of that instead of saying so; the pod is not ready either way.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from components.core.faults import Fault, refuse
from components.core.spec import Spec
from serving.model_manifest import ModelManifest, TensorName

# A ConfigMap holds at most 1 MiB, in base64 and beside the model's config.
MAX_CHECK_BYTES = 512 * 1024


class WarmupInputSpec(Spec):
    """Made-up data for one input."""

    name: TensorName
    dims: Annotated[
        tuple[Annotated[int, Field(ge=1, le=2**31 - 1)], ...],
        Field(strict=False, min_length=1, description="Shape of one row: without the batch axis, every axis fixed."),
    ]
    data: Annotated[Literal["zero", "random"], Field(description="Zeros (of BYTES: empty strings) or random bits.")] = "zero"


def _by_name(inputs: tuple[WarmupInputSpec, ...]) -> tuple[WarmupInputSpec, ...]:
    """The message is a map, which has no order of its own."""
    return tuple(sorted(inputs, key=lambda tensor: tensor.name))


class WarmupSampleSpec(Spec):
    """A request per row of the batch; without `inputs` it is the check sample of the model's manifest."""

    batch_size: Annotated[int, Field(ge=1, le=1024, description="Requests that run as one batch.")] = 1
    count: Annotated[int, Field(ge=1, le=1000, description="How often.")] = 1
    inputs: Annotated[
        tuple[WarmupInputSpec, ...], AfterValidator(_by_name), Field(strict=False, description="Made-up data; absent: the check sample.")
    ] = ()

    @model_validator(mode="after")
    def _inputs_are_distinct(self) -> Self:
        names = [tensor.name for tensor in self.inputs]
        if len(set(names)) != len(names):
            refuse([Fault(("inputs",), f"{names}: an input is listed once", "remove the repetition")])
        return self

    def faults(self, manifest: ModelManifest, max_batch_size: int) -> Iterator[Fault]:
        """Where the sample is no request of the model."""
        if self.batch_size > max(1, max_batch_size):
            way_out = "lower it, or raise batching.maxBatchSize"
            yield Fault(("batchSize",), f"{self.batch_size} is above batching.maxBatchSize {max_batch_size}", way_out)
        if not self.inputs:
            yield from _check_faults(manifest, max_batch_size)
            return
        wanted = {tensor.name: tensor.dims[1:] if max_batch_size else tensor.dims for tensor in manifest.signature.inputs}
        if {tensor.name for tensor in self.inputs} != set(wanted):
            yield Fault(("inputs",), f"are not those of the model: {', '.join(wanted)}", "list each of them once, or drop inputs")
            return
        for tensor in self.inputs:
            if not _fits(tensor.dims, wanted[tensor.name]):
                reason = f"{tensor.name} has dims {list(tensor.dims)}, and a row of the model's has {list(wanted[tensor.name])}"
                yield Fault(("inputs",), reason, "correct dims; -1 stands for any size")


def check_file(index: int) -> str:
    """Name of the file with the check's value for the input of this place; Triton looks for it in <model>/warmup/."""
    return f"check-{index}" if index else "check"


def warmup_files(manifest: ModelManifest, warmup: tuple[WarmupSampleSpec, ...]) -> Mapping[str, bytes]:
    """Files that Triton reads from <model>/warmup/, by name: the tensors of the check."""
    if all(sample.inputs for sample in warmup):
        return {}
    return {check_file(index): tensor.content for index, tensor in enumerate(manifest.check_inputs)}


def _check_faults(manifest: ModelManifest, max_batch_size: int) -> Iterator[Fault]:
    tensors = manifest.check_inputs
    rows = sorted({tensor.shape[0] for tensor in tensors})
    if not tensors:
        reason = f"model {manifest.name!r} has no check sample"
    elif sum(len(tensor.content) for tensor in tensors) > MAX_CHECK_BYTES:
        reason = f"the model's check sample has more than {MAX_CHECK_BYTES} bytes"
    elif max_batch_size and rows != [1]:
        reason = f"the model's check sample has {rows[-1]} rows, and a request of a warm-up has one"
    else:
        return
    yield Fault(("inputs",), f"are required: {reason}", "declare inputs, with dims and data")


def _fits(dims: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(dims) == len(wanted) and all(size in (dim, -1) or dim == size for dim, size in zip(dims, wanted, strict=True))
