"""Warm-up samples as Triton's messages, and back."""

from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from serving.model_config.datatypes import data_type
from serving.model_config.warmup import CHECK_FILE, WarmupSampleSpec
from serving.model_manifest import SignatureSpec


def model_warmup(signature: SignatureSpec, samples: tuple[WarmupSampleSpec, ...], *, batched: bool) -> list[pb.ModelWarmup]:
    """One message per sample; it is named after its place, for the server's log."""
    return [
        pb.ModelWarmup(name=_name(index), batch_size=sample.batch_size, count=sample.count, inputs=_inputs(signature, sample, batched=batched))
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


def _inputs(signature: SignatureSpec, sample: WarmupSampleSpec, *, batched: bool) -> dict[str, pb.ModelWarmup.Input]:
    types = {tensor.name: data_type(tensor.datatype) for tensor in signature.inputs}
    if sample.inputs:
        return {
            tensor.name: pb.ModelWarmup.Input(data_type=types[tensor.name], dims=tensor.dims, **{f"{tensor.data}_data": True})
            for tensor in sample.inputs
        }
    [only] = signature.inputs
    dims = [1 if size == -1 else size for size in (only.dims[1:] if batched else only.dims)]
    return {only.name: pb.ModelWarmup.Input(data_type=types[only.name], dims=dims, input_data_file=CHECK_FILE)}


def _is_check(sample: pb.ModelWarmup) -> bool:
    return [tensor.input_data_file for tensor in sample.inputs.values()] == [CHECK_FILE]


def _input_values(sample: pb.ModelWarmup) -> list[dict[str, Any]]:
    return [
        {"name": name, "dims": list(tensor.dims), "data": "random" if tensor.random_data else "zero"}
        for name, tensor in sorted(sample.inputs.items())
    ]
