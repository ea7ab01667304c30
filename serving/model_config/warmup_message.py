"""Warm-up samples as Triton's messages, and back."""

from collections.abc import Mapping
from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from serving.model_config.datatypes import data_type
from serving.model_config.warmup import WarmupSampleSpec, check_file
from serving.model_manifest import SignatureSpec

# Name of an input to its shape in the check sample, with the batch axis.
Shapes = Mapping[str, tuple[int, ...]]


def model_warmup(signature: SignatureSpec, samples: tuple[WarmupSampleSpec, ...], shapes: Shapes, *, batched: bool) -> list[pb.ModelWarmup]:
    """One message per sample; it is named after its place, for the server's log."""
    check = _check(signature, shapes, batched=batched)
    return [
        pb.ModelWarmup(
            name=_name(index), batch_size=sample.batch_size, count=sample.count, inputs=_inputs(signature, sample) if sample.inputs else check
        )
        for index, sample in enumerate(samples)
    ]


def warmup_values(config: pb.ModelConfig) -> list[dict[str, Any]]:
    """Values of the WarmupSampleSpecs, as the stack file spells them."""
    return [
        {"batchSize": sample.batch_size, "count": sample.count or 1, "inputs": [] if _is_check(sample) else _input_values(sample)}
        for sample in config.model_warmup
    ]


def _name(index: int) -> str:
    return f"sample-{index}"


def _inputs(signature: SignatureSpec, sample: WarmupSampleSpec) -> dict[str, pb.ModelWarmup.Input]:
    types = {tensor.name: data_type(tensor.datatype) for tensor in signature.inputs}
    return {
        tensor.name: pb.ModelWarmup.Input(data_type=types[tensor.name], dims=tensor.dims, **{f"{tensor.data}_data": True}) for tensor in sample.inputs
    }


def _check(signature: SignatureSpec, shapes: Shapes, *, batched: bool) -> dict[str, pb.ModelWarmup.Input]:
    """Where a shape is not known, as of a config.pbtxt that is read, variable axes are 1."""
    messages = {}
    for index, tensor in enumerate(signature.inputs):
        dims = shapes.get(tensor.name, tuple(1 if size == -1 else size for size in tensor.dims))
        messages[tensor.name] = pb.ModelWarmup.Input(
            data_type=data_type(tensor.datatype), dims=dims[1:] if batched else dims, input_data_file=check_file(index)
        )
    return messages


def _is_check(sample: pb.ModelWarmup) -> bool:
    files = {tensor.input_data_file for tensor in sample.inputs.values()}
    return bool(files) and files == {check_file(index) for index in range(len(sample.inputs))}


def _input_values(sample: pb.ModelWarmup) -> list[dict[str, Any]]:
    return [
        {"name": name, "dims": list(tensor.dims), "data": "random" if tensor.random_data else "zero"}
        for name, tensor in sorted(sample.inputs.items())
    ]
