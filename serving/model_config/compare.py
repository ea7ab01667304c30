"""Two configs compared: what Triton fills in by itself is filled in first, then every field that differs is named."""

from typing import Any

from google.protobuf.message import Message
from tritonclient.grpc import model_config_pb2 as pb

from serving.model_config.backends import NATIVE
from serving.model_config.sequence import IDLE_DEFAULT_MICROSECONDS

# triton-inference-server/core src/constants.h and AutoCompleteBackendFields of src/model_config_utils.cc: what a platform means, and the file
# that a backend looks for when the config names none.
BACKEND_OF_PLATFORM = {
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
    "tensorflow_savedmodel": "tensorflow",
    "tensorrt_plan": "tensorrt",
}
MODEL_FILES = {
    "onnxruntime": "model.onnx",
    "pytorch": "model.pt",
    "tensorflow": "model.savedmodel",
    "tensorrt": "model.plan",
    "python": "model.py",
}
# SetDefaultInstanceCount of the same file, for copies on CPUs.
CPU_COUNTS = {"onnxruntime": 2, "tensorflow": 2}
# There or not there is a difference for these, whatever they hold.
TELLING_FIELDS = {"rate_limiter"}
MAX_SHOWN = 60


def with_defaults(config: pb.ModelConfig) -> pb.ModelConfig:
    """A copy as Triton completes it on a machine without GPUs; fields that only repeat a default, and names for the log, are left out."""
    full = pb.ModelConfig()
    full.CopyFrom(config)
    full.backend = full.backend or BACKEND_OF_PLATFORM.get(full.platform, "")
    if full.backend in {backend.name for backend in NATIVE.values() if not backend.platform}:
        if BACKEND_OF_PLATFORM.get(full.platform) == full.backend:
            full.platform = ""
    elif full.backend == "tensorflow" and not full.platform:
        full.platform = NATIVE["savedmodel"].platform
    if full.default_model_filename == MODEL_FILES.get(full.backend):
        full.default_model_filename = ""
    if full.version_policy.HasField("latest") and full.version_policy.latest.num_versions == 1:
        full.ClearField("version_policy")
    if full.platform != "ensemble":
        _complete_instances(full)
    if full.HasField("sequence_batching"):
        sequence = full.sequence_batching
        sequence.max_sequence_idle_microseconds = sequence.max_sequence_idle_microseconds or IDLE_DEFAULT_MICROSECONDS
        if not sequence.HasField("oldest"):
            sequence.direct.SetInParent()
    _complete_warmup(full)
    return full


def _complete_instances(config: pb.ModelConfig) -> None:
    if not config.instance_group:
        config.instance_group.add()
    for group in config.instance_group:
        group.name = ""
        if group.kind == pb.ModelInstanceGroup.Kind.Value("KIND_AUTO"):
            group.kind = pb.ModelInstanceGroup.Kind.Value("KIND_CPU")
        if group.count < 1:
            on_cpu = group.kind == pb.ModelInstanceGroup.Kind.Value("KIND_CPU")
            group.count = CPU_COUNTS.get(config.backend, 1) if on_cpu else 1


def _complete_warmup(config: pb.ModelConfig) -> None:
    """A sample of batch size 0 is skipped (backend_model_instance.cc, GenerateWarmupData); one without a count runs once."""
    run = [sample for sample in config.model_warmup if sample.batch_size]
    for index, sample in enumerate(run):
        sample.name = f"sample-{index}"
        sample.count = sample.count or 1
    kept = [pb.ModelWarmup.FromString(sample.SerializeToString()) for sample in run]
    del config.model_warmup[:]
    config.model_warmup.extend(kept)


def differences(theirs: Message, ours: Message, path: str = "") -> tuple[str, ...]:
    """Fields of two messages of one kind that differ, each as `path: value of theirs`, in the order of their declaration."""
    found: list[str] = []
    for field in theirs.DESCRIPTOR.fields:
        where = f"{path}.{field.name}" if path else field.name
        if field.is_repeated:
            found += _repeated(_items(theirs, field), _items(ours, field), where)
        elif field.message_type is None:
            found += _value(getattr(theirs, field.name), getattr(ours, field.name), where)
        elif theirs.HasField(field.name) != ours.HasField(field.name) and (field.containing_oneof or field.name in TELLING_FIELDS):
            found.append(f"{where}: {_shown(getattr(theirs, field.name)) if theirs.HasField(field.name) else 'not set'}")
        else:
            found += differences(getattr(theirs, field.name), getattr(ours, field.name), where)
    return tuple(found)


def _items(message: Message, field: Any) -> dict[Any, Any]:
    """Items of a repeated field by index, of a map by key."""
    values = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {key: values[key] for key in sorted(values)}
    return dict(enumerate(values))


def _repeated(theirs: dict[Any, Any], ours: dict[Any, Any], path: str) -> list[str]:
    found: list[str] = []
    for key in [*theirs, *(key for key in ours if key not in theirs)]:
        where = f"{path}[{key}]"
        if key not in theirs or key not in ours:
            found.append(f"{where}: {_shown(theirs[key]) if key in theirs else 'not set'}")
        elif isinstance(theirs[key], Message):
            found += differences(theirs[key], ours[key], where)
        else:
            found += _value(theirs[key], ours[key], where)
    return found


def _value(theirs: Any, ours: Any, path: str) -> list[str]:
    return [] if theirs == ours else [f"{path}: {_shown(theirs)}"]


def _shown(value: Any) -> str:
    text = " ".join(str(value).split()) if isinstance(value, Message) else repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
