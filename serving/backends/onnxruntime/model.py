"""The backend `onnxruntime` of the CPU image: Triton's side of any ONNX network, one session per instance.

Installed as backends/onnxruntime/model.py, which makes it a backend written in Python that goes by the name of NVIDIA's: the same config.pbtxt and the
same version directory (model.onnx and nothing else) are served by both. It reads the same settings: optimization.graph.level and the parameters
intra_op_thread_count, inter_op_thread_count and execution_mode (triton-inference-server/onnxruntime_backend, README); only the number of threads
defaults to 1, because a server on CPUs scales by instances.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils

MODEL_FILE = "model.onnx"
# Triton's level -> onnxruntime's; 0 is what an absent setting reads as.
GRAPH_LEVELS = {
    0: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    1: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    -1: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    2: onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
EXECUTION_MODES = {"0": onnxruntime.ExecutionMode.ORT_SEQUENTIAL, "1": onnxruntime.ExecutionMode.ORT_PARALLEL}
# BF16 is missing: numpy has no such type.
ONNX_TYPES = {
    "TYPE_BOOL": "bool",
    "TYPE_UINT8": "uint8",
    "TYPE_UINT16": "uint16",
    "TYPE_UINT32": "uint32",
    "TYPE_UINT64": "uint64",
    "TYPE_INT8": "int8",
    "TYPE_INT16": "int16",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float",
    "TYPE_FP64": "double",
    "TYPE_STRING": "string",
}
Feed = dict[str, np.ndarray]


class TritonPythonModel:
    """The class Triton's python backend looks for."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the network; TritonModelException with the reason when the file or the config is no use."""
        config = json.loads(args["model_config"])
        if args["model_instance_kind"] != "CPU":
            raise pb_utils.TritonModelException(
                f"instances of kind {args['model_instance_kind']}: this image runs networks on CPUs only, set KIND_CPU"
            )
        if config.get("sequence_batching", {}).get("state"):
            raise pb_utils.TritonModelException("sequence_batching.state: this image keeps no implicit state; pass the state as tensors")
        path = Path(args["model_repository"]) / args["model_version"] / (config.get("default_model_filename") or MODEL_FILE)
        self._session = _load(path, session_options(config))
        self._batched = int(config["max_batch_size"]) > 0
        check_signature(config, self._session)
        self._outputs = [output["name"] for output in config["output"]]
        self._texts = {tensor.name for tensor in self._session.get_inputs() if tensor.type == "tensor(string)"}

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer requests that fit together with one run of the network; one that the network refuses fails alone."""
        responses: list[Any] = [None] * len(requests)
        alike: dict[Any, list[tuple[int, Feed]]] = defaultdict(list)
        for position, request in enumerate(requests):
            try:
                feed = {tensor.name(): self._read(tensor) for tensor in request.inputs()}
            except UnicodeDecodeError as error:
                responses[position] = _error(f"a text tensor is not UTF-8: {error.reason} at byte {error.start}")
            else:
                # Without a batch axis no two requests fit together.
                alike[_shapes(feed) if self._batched else position].append((position, feed))
        for group in alike.values():
            for (position, _), response in zip(group, self._run([feed for _, feed in group]), strict=True):
                responses[position] = response
        return responses

    def _read(self, tensor: Any) -> np.ndarray:
        values = tensor.as_numpy()
        if tensor.name() not in self._texts:
            return values  # type: ignore[no-any-return]
        return np.array([value.decode() for value in values.ravel()], dtype=np.object_).reshape(values.shape)

    def _run(self, feeds: list[Feed]) -> list[Any]:
        """A response for each of the feeds, which have the same shapes but for the batch."""
        joined = feeds[0] if len(feeds) == 1 else {name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]}
        try:
            results = self._session.run(self._outputs, joined)
        except Exception as error:  # noqa: BLE001  onnxruntime raises classes of its own, with no common base, for input that does not suit the network
            if len(feeds) == 1:
                return [_error(f"the network refuses the input: {error}")]
            return [response for feed in feeds for response in self._run([feed])]
        if len(feeds) == 1:
            return [self._response(results)]
        ends = np.cumsum([len(next(iter(feed.values()))) for feed in feeds])
        if any(len(result) != ends[-1] for result in results):
            # The network joins or drops rows, so its answer cannot be taken apart.
            return [response for feed in feeds for response in self._run([feed])]
        parts = [np.split(result, ends[:-1]) for result in results]
        return [self._response(list(rows)) for rows in zip(*parts, strict=True)]

    def _response(self, results: list[np.ndarray]) -> Any:
        tensors = [pb_utils.Tensor(name, _to_triton(result)) for name, result in zip(self._outputs, results, strict=True)]
        return pb_utils.InferenceResponse(output_tensors=tensors)


def session_options(config: dict[str, Any]) -> onnxruntime.SessionOptions:
    """Options as the model's config asks for them; TritonModelException names the setting that cannot be."""
    options = onnxruntime.SessionOptions()
    level = int(config.get("optimization", {}).get("graph", {}).get("level", 0))
    if level not in GRAPH_LEVELS:
        raise pb_utils.TritonModelException(f"optimization.graph.level {level}: one of {sorted(GRAPH_LEVELS)}")
    options.graph_optimization_level = GRAPH_LEVELS[level]
    settings = {key: str(value.get("string_value", "")) for key, value in config.get("parameters", {}).items()}
    options.intra_op_num_threads = _threads(settings, "intra_op_thread_count")
    options.inter_op_num_threads = _threads(settings, "inter_op_thread_count")
    mode = settings.get("execution_mode", "0")
    if mode not in EXECUTION_MODES:
        raise pb_utils.TritonModelException(f"parameter execution_mode {mode!r}: 0 (one operator after the other) or 1 (side by side)")
    options.execution_mode = EXECUTION_MODES[mode]
    return options


def check_signature(config: dict[str, Any], session: onnxruntime.InferenceSession) -> None:
    """TritonModelException when config and network do not name the same tensors with the same types and shapes."""
    batched = int(config["max_batch_size"]) > 0
    for kind, declared, actual in (
        ("input", [*config["input"], *_controls(config)], session.get_inputs()),
        ("output", config["output"], session.get_outputs()),
    ):
        found = {tensor.name: tensor for tensor in actual}
        for tensor in declared:
            _check_tensor(kind, tensor, found, batched=batched)
        missing = found.keys() - {tensor["name"] for tensor in declared}
        if kind == "input" and missing:
            raise pb_utils.TritonModelException(f"the network needs inputs that the config does not name: {', '.join(sorted(missing))}")


def _check_tensor(kind: str, tensor: dict[str, Any], found: dict[str, Any], *, batched: bool) -> None:
    name, datatype = tensor["name"], tensor["data_type"]
    if name not in found:
        raise pb_utils.TritonModelException(f"{kind} {name!r} is none of the network's: {', '.join(sorted(found))}")
    if datatype not in ONNX_TYPES:
        raise pb_utils.TritonModelException(f"{kind} {name!r}: {datatype} cannot be served by this image")
    if found[name].type != f"tensor({ONNX_TYPES[datatype]})":
        raise pb_utils.TritonModelException(f"{kind} {name!r} is {datatype} in the config and {found[name].type} in the network")
    if tensor["dims"] is None:
        return
    dims = ([-1] if batched else []) + [int(size) for size in tensor["dims"]]
    shape = [size if isinstance(size, int) else -1 for size in found[name].shape]
    fits = len(dims) == len(shape) and all(actual in (-1, size) for size, actual in zip(dims, shape, strict=True))
    # What the network gives may be of any size in the config; what it takes may not be wider there than here. A network without shapes tells nothing.
    if kind == "output":
        fits = not shape or (
            len(dims) == len(shape) and all(-1 in (size, actual) or size == actual for size, actual in zip(dims, shape, strict=True))
        )
    if not fits:
        raise pb_utils.TritonModelException(f"{kind} {name!r} has shape {dims} in the config (with the batch axis) and {shape} in the network")


def _controls(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Tensors that Triton itself adds to the requests of a sequence."""
    controls = []
    for tensor in config.get("sequence_batching", {}).get("control_input", []):
        for control in tensor["control"]:
            typed = next((kind for kind in ("fp32", "int32", "bool") if control.get(f"{kind}_false_true")), None)
            datatype = control["data_type"] if typed is None else f"TYPE_{typed.upper()}"
            controls.append({"name": tensor["name"], "data_type": datatype, "dims": None})
    return controls


def _load(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    if not path.is_file():
        raise pb_utils.TritonModelException(f"the version directory has no {path.name}")
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # Whatever a corrupt file makes onnxruntime raise; its classes have no common base.
        raise pb_utils.TritonModelException(f"{path.name} cannot be loaded: {error}") from error


def _threads(settings: dict[str, str], name: str) -> int:
    text = settings.get(name, "1")
    if not text.isdecimal():
        raise pb_utils.TritonModelException(f"parameter {name} {text!r}: a number of threads, 0 for one per core")
    return int(text)


def _shapes(feed: Feed) -> tuple[Any, ...]:
    """What must be equal for two requests to become one batch."""
    return tuple((name, feed[name].shape[1:]) for name in sorted(feed))


def _to_triton(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "OU":
        return values
    return np.array([str(value).encode() for value in values.ravel()], dtype=np.object_).reshape(values.shape)


def _error(message: str) -> Any:
    return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
