"""What runs a variant. A runtime that is not on this machine says why; nothing stands in for it."""

import importlib.util
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import onnx
import onnxruntime

from serving.optimise.adapters import Session

Level = Literal["none", "basic", "extended", "all"]
LEVELS: Mapping[Level, Any] = {
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
CPU, TENSORRT = "CPUExecutionProvider", "TensorrtExecutionProvider"
ERRORS_ONLY = 3
OWN_DOMAINS = {"", "ai.onnx"}


class CannotRunError(Exception):
    """Why a runtime does not run here; part of the report, not a fault."""


# Network, level of graph optimisation, sizes of symbolic axes.
Opener = Callable[[Path, Level, Mapping[str, int]], Session]


def onnxruntime_cpu(network: Path, level: Level, _fixed: Mapping[str, int]) -> Session:
    session: Session = onnxruntime.InferenceSession(network, _options(level), providers=[CPU])
    return session


def tensorrt(network: Path, level: Level, _fixed: Mapping[str, int]) -> Session:
    """TensorRT through onnxruntime, in half precision."""
    if TENSORRT not in onnxruntime.get_available_providers():
        raise CannotRunError(f"the installed onnxruntime has no {TENSORRT}; it comes with onnxruntime-gpu, TensorRT and an NVIDIA GPU")
    providers = [(TENSORRT, {"trt_fp16_enable": True}), CPU]
    session = onnxruntime.InferenceSession(network, _options(level), providers=providers)
    # onnxruntime goes on with the next provider when one cannot start, which would measure the CPU.
    if session.get_providers()[0] != TENSORRT:
        raise CannotRunError(f"{TENSORRT} is there but did not start: no usable NVIDIA GPU or TensorRT library")
    found: Session = session
    return found


def tvm(network: Path, _level: Level, fixed: Mapping[str, int]) -> Session:
    """Apache TVM's standard pipeline for this CPU, without tuning, compiled for one example."""
    if importlib.util.find_spec("tvm") is None:
        raise CannotRunError("the package apache-tvm is not installed")
    # Read when TVM's thread pool starts.
    os.environ.setdefault("TVM_NUM_THREADS", "1")
    import tvm as library  # noqa: PLC0415  an optional package
    from tvm import relax  # noqa: PLC0415
    from tvm.relax.frontend.onnx import from_onnx  # noqa: PLC0415

    module = relax.get_pipeline("zero")(from_onnx(with_fixed_axes(network, fixed)))
    target = library.target.Target({"kind": "llvm", "mcpu": library.target.codegen.llvm_get_system_cpu()})
    return _TvmSession(library, relax.VirtualMachine(library.compile(module, target=target), library.cpu()))


class _TvmSession:
    """One run per example, since it is compiled for one."""

    def __init__(self, library: Any, machine: Any) -> None:
        self._library = library
        self._machine = machine

    def run(self, _output_names: Sequence[str] | None, input_feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        (rows,) = input_feed.values()
        outputs = [self._machine["main"](self._library.runtime.tensor(rows[index : index + 1])) for index in range(len(rows))]
        return [np.concatenate([(output if hasattr(output, "numpy") else output[0]).numpy() for output in outputs])]


def with_fixed_axes(network: Path, fixed: Mapping[str, int]) -> onnx.ModelProto:
    """The network with its symbolic axes replaced by sizes and what follows from them folded into constants."""
    model = onnx.load_model(network)
    for tensor in (*model.graph.input, *model.graph.output):
        for axis in tensor.type.tensor_type.shape.dim:
            if axis.dim_param in fixed:
                axis.dim_value = fixed[axis.dim_param]
    return _optimised(model.SerializeToString(), "basic")


def operators(network: Path) -> Counter[str]:
    """Nodes of a network by operator."""
    return _operators(onnx.load_model(network))


def optimised_operators(network: Path, level: Level) -> Counter[str]:
    """Nodes that onnxruntime really runs at `level`, by operator; fused ones are in domains of its own."""
    return _operators(_optimised(network.read_bytes(), level))


def _operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type if node.domain in OWN_DOMAINS else f"{node.domain}.{node.op_type}" for node in model.graph.node)


def _optimised(content: bytes, level: Level) -> onnx.ModelProto:
    with TemporaryDirectory() as folder:
        options = _options(level)
        options.optimized_model_filepath = str(Path(folder, "optimised.onnx"))
        onnxruntime.InferenceSession(content, options, providers=[CPU])
        return onnx.load_model(options.optimized_model_filepath)


def _options(level: Level) -> Any:
    """As the served model: one thread, because a server scales by instances."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    return options
