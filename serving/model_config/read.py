"""The way back: a config.pbtxt into Triton's message, and into the project's Specs as far as these can say it.

What they cannot say is found by rendering them again and comparing: nothing is lost in silence, whatever the file holds.
"""

import json
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from pydantic import ValidationError
from tritonclient.grpc import model_config_pb2 as pb

from components.errors import ManifestError
from serving.model_config.backends import NATIVE
from serving.model_config.batching_message import batching_values
from serving.model_config.compare import differences, with_defaults
from serving.model_config.datatypes import datatype_of
from serving.model_config.instances_message import instances_values, rate_limiter_values
from serving.model_config.optimization_message import optimization_values
from serving.model_config.render import ModelFacts, config_message
from serving.model_config.sequence_message import control_values, sequence_values
from serving.model_config.spec import ServingSpec
from serving.model_config.warmup_message import warmup_values
from serving.model_manifest import Format, SignatureSpec
from serving.model_steps import StepSpec


@dataclass(frozen=True, kw_only=True)
class ReadConfig:
    """A config.pbtxt in the project's words; `unexpressed` names the fields that have none, by path and value.

    `facts` belong into a model.yaml, `serving` into a stack file. A Deployment of ours loads exactly one version; a file may name none or several.
    """

    facts: ModelFacts
    format: Format
    serving: ServingSpec
    unexpressed: tuple[str, ...]


def parse_config(text: str) -> pb.ModelConfig:
    """The protobuf message behind a config.pbtxt; ManifestError with line and column when Triton could not read it either."""
    try:
        config = text_format.Parse(text, pb.ModelConfig())
    except (text_format.ParseError, UnicodeError) as error:
        raise ManifestError(f"no config.pbtxt: {error}", hint="correct the text at the place named (line:column)") from error
    for path, number, names in _nameless(config):
        raise ManifestError(f"model {config.name!r}: {path}: {number} stands for nothing", hint=f"write one of {', '.join(names)}")
    return config


def _nameless(message: Message, above: str = "") -> Iterator[tuple[str, int, list[str]]]:
    """Numbers of enumerations that have no name, which the text may hold: path, number, and the names there are."""
    for field, value in message.ListFields():
        path = f"{above}{field.name}"
        if field.enum_type is not None:
            numbers = value if field.is_repeated else [value]
            yield from ((path, number, list(field.enum_type.values_by_name)) for number in numbers if number not in field.enum_type.values_by_number)
        elif field.message_type is not None:
            for inner in _messages(field, value):
                yield from _nameless(inner, f"{path}.")


def _messages(field: FieldDescriptor, value: Any) -> list[Message]:
    if isinstance(value, MutableMapping):
        return [each for each in value.values() if isinstance(each, Message)]
    return list(value) if field.is_repeated else [value]


def read_config(text: str) -> ReadConfig:
    """Read a config.pbtxt into Specs; ManifestError when it is none, or none that Triton would load."""
    config = with_defaults(parse_config(text))
    model_format = _format(config)
    try:
        signature = SignatureSpec.model_validate_json(json.dumps(_signature_values(config)))
        serving = ServingSpec.model_validate_json(json.dumps(_serving_values(config)))
        steps = tuple(StepSpec.model_validate_json(json.dumps(_step_values(step))) for step in config.ensemble_scheduling.step)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "(the whole file)"
        raise ManifestError(f"model {config.name!r}: {key}: {first['msg']}", hint="no such model can be served; correct the file") from error
    _check_warmup(config, signature)
    facts = ModelFacts(
        name=config.name,
        backend=NATIVE[model_format],
        versions=tuple(config.version_policy.specific.versions),
        signature=signature,
        decoupled=config.model_transaction_policy.decoupled,
        parameters={name: parameter.string_value for name, parameter in sorted(config.parameters.items())},
        steps=steps,
    )
    # Counts are known by now, so the number of cores decides nothing.
    again = with_defaults(config_message(facts, serving, cpu_cores=0))
    return ReadConfig(facts=facts, format=model_format, serving=serving, unexpressed=differences(config, again))


def _check_warmup(config: pb.ModelConfig, signature: SignatureSpec) -> None:
    """Raise ManifestError for a sample of inputs that the model does not have."""
    known = {tensor.name for tensor in signature.inputs}
    for index, sample in enumerate(config.model_warmup):
        names = set(sample.inputs)
        if not names <= known or (not names and len(known) != 1):
            said = f"inputs {sorted(names)} are not those of the model, {sorted(known)}"
            raise ManifestError(f"model {config.name!r}: model_warmup.{index}: {said}", hint="no such model can be served; correct the file")


def _format(config: pb.ModelConfig) -> Format:
    for name, backend in NATIVE.items():
        if (backend.name, backend.platform) == (config.backend, config.platform):
            return name
    raise ManifestError(
        f"model {config.name!r}: backend {config.backend!r} with platform {config.platform!r} runs none of the formats {', '.join(NATIVE)}",
        hint="convert the model to one of them",
    )


def _signature_values(config: pb.ModelConfig) -> dict[str, Any]:
    batched = config.max_batch_size > 0
    return {
        "inputs": [_tensor_values(tensor, batched=batched) for tensor in config.input],
        "outputs": [_tensor_values(tensor, batched=batched) for tensor in config.output],
        "controls": control_values(config),
    }


def _tensor_values(tensor: pb.ModelInput | pb.ModelOutput, *, batched: bool) -> dict[str, Any]:
    """With the batch axis, as model.yaml has it; a tensor without dims is none to Triton either and stays without."""
    axis = [-1] if batched and tensor.dims else []
    return {"name": tensor.name, "datatype": datatype_of(tensor.data_type), "dims": [*axis, *tensor.dims]}


def _step_values(step: pb.ModelEnsembling.Step) -> dict[str, Any]:
    """A step of ours names its version; the newest, -1, has no word, and the caller finds that it is lost."""
    return {
        "model": step.model_name,
        "version": max(1, step.model_version),
        "inputs": dict(sorted(step.input_map.items())),
        "outputs": dict(sorted(step.output_map.items())),
    }


def _serving_values(config: pb.ModelConfig) -> dict[str, Any]:
    return {
        "batching": batching_values(config),
        "instances": instances_values(config),
        "sequence": sequence_values(config),
        "responseCache": config.response_cache.enable,
        "rateLimiter": rate_limiter_values(config),
        "warmup": warmup_values(config),
        "optimization": optimization_values(config),
    }
