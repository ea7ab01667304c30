"""Sequence batching and its control inputs as Triton's messages, and back."""

from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from serving.model_config.datatypes import data_type, datatype_of
from serving.model_config.sequence import IDLE_DEFAULT_MICROSECONDS, DirectSequenceSpec, SequenceSpec
from serving.model_manifest import ControlSpec

Control = pb.ModelSequenceBatching.Control
# Field of the message that holds the two values, by datatype.
FLAGS: dict[str, tuple[str, type]] = {
    "INT32": ("int32_false_true", int),
    "FP32": ("fp32_false_true", float),
    "BOOL": ("bool_false_true", bool),
}


def sequence_batching(sequence: SequenceSpec, controls: tuple[ControlSpec, ...]) -> pb.ModelSequenceBatching:
    message = pb.ModelSequenceBatching(
        max_sequence_idle_microseconds=sequence.max_idle_microseconds,
        control_input=[pb.ModelSequenceBatching.ControlInput(name=control.name, control=[_control(control)]) for control in controls],
    )
    if isinstance(sequence, DirectSequenceSpec):
        message.direct.max_queue_delay_microseconds = sequence.max_queue_delay_microseconds
        message.direct.minimum_slot_utilization = sequence.minimum_slot_utilization_percent / 100
        message.direct.SetInParent()
    else:
        message.oldest.max_candidate_sequences = sequence.max_candidate_sequences
        message.oldest.preferred_batch_size.extend(sequence.preferred_sizes)
        message.oldest.max_queue_delay_microseconds = sequence.max_queue_delay_microseconds
        message.oldest.preserve_ordering = sequence.preserve_ordering
    return message


def sequence_values(config: pb.ModelConfig) -> dict[str, Any] | None:
    """Values of a SequenceSpec, as the stack file spells them; None where the model has none."""
    if not config.HasField("sequence_batching"):
        return None
    message = config.sequence_batching
    idle = {"maxIdleMicroseconds": message.max_sequence_idle_microseconds or IDLE_DEFAULT_MICROSECONDS}
    if message.HasField("oldest"):
        return {
            **idle,
            "strategy": "oldest",
            "maxCandidateSequences": message.oldest.max_candidate_sequences,
            "preferredSizes": list(message.oldest.preferred_batch_size),
            "maxQueueDelayMicroseconds": message.oldest.max_queue_delay_microseconds,
            "preserveOrdering": message.oldest.preserve_ordering,
        }
    utilization = message.direct.minimum_slot_utilization
    return {
        **idle,
        "strategy": "direct",
        "maxQueueDelayMicroseconds": message.direct.max_queue_delay_microseconds,
        "minimumSlotUtilizationPercent": round(utilization * 100) if 0 <= utilization <= 1 else 0,
    }


def control_values(config: pb.ModelConfig) -> list[dict[str, Any]]:
    """Values of the ControlSpecs; of a tensor with several controls, the first."""
    return [{"name": tensor.name, **_control_values(tensor.control[0])} for tensor in config.sequence_batching.control_input if tensor.control]


def _control(control: ControlSpec) -> pb.ModelSequenceBatching.Control:
    message = Control(kind=Control.Kind.Value(f"CONTROL_SEQUENCE_{control.kind.upper()}"))
    if control.kind == "corrid":
        message.data_type = data_type(control.datatype)
    else:
        field, kind = FLAGS[control.datatype]
        getattr(message, field).extend(kind(value) for value in control.values)
    return message


def _control_values(message: pb.ModelSequenceBatching.Control) -> dict[str, Any]:
    kind = Control.Kind.Name(message.kind).removeprefix("CONTROL_SEQUENCE_").lower()
    if kind == "corrid":
        return {"kind": kind, "datatype": datatype_of(message.data_type)}
    for datatype, (field, _) in FLAGS.items():
        values = list(getattr(message, field))
        if values:
            return {"kind": kind, "datatype": datatype, "values": [int(value) for value in values if abs(value) < 2**31]}
    return {"kind": kind, "datatype": "INVALID"}
