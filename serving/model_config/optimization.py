"""What the backend may do to a network to make it faster; which of it exists depends on the backend."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from components.core.faults import Fault, refuse
from components.core.spec import Spec
from serving.model_config.backends import Backend


class OptimizationSpec(Spec):
    """Switches of the backends; absent: the backend's own default."""

    graph_level: Annotated[
        Literal[-1, 1, 2] | None,
        Field(description="ONNX: -1 basic, 1 extended, 2 none; absent: all. SavedModel: 1 and 2 compile with XLA, -1 none."),
    ] = None
    accelerator: Annotated[
        Literal["tensorrt", "openvino", "auto-mixed-precision"] | None,
        Field(
            description="Runs the network instead of the backend's own kernels; tensorrt builds engines when the model loads, which takes minutes."
        ),
    ] = None
    precision: Annotated[Literal["fp32", "fp16"] | None, Field(description="Of the accelerator tensorrt; absent: fp32.")] = None
    workspace_mib: Annotated[int | None, Field(ge=1, le=1_048_576, description="GPU memory the accelerator tensorrt may plan with, in MiB.")] = None
    cuda_graphs: Annotated[bool, Field(description="TensorRT plans: kernels of a batch are started at once.")] = False
    input_pinned_memory: Annotated[bool | None, Field(description="Inputs are copied to the GPU through pinned memory; absent: yes.")] = None
    output_pinned_memory: Annotated[bool | None, Field(description="Outputs are copied from the GPU through pinned memory; absent: yes.")] = None
    gather_kernel_buffer_threshold: Annotated[
        int | None, Field(ge=1, le=4096, description="Inputs in so many buffers or more are joined on the GPU in one step.")
    ] = None

    @model_validator(mode="after")
    def _settings_have_their_accelerator(self) -> Self:
        refuse(
            [
                Fault(
                    (key,),
                    f"is a setting of accelerator tensorrt, and accelerator is {self.accelerator}",
                    f"set accelerator: tensorrt, or drop {key}",
                )
                for key, value in (("precision", self.precision), ("workspaceMib", self.workspace_mib))
                if value is not None and self.accelerator != "tensorrt"
            ]
        )
        return self

    def faults(self, backend: Backend, *, on_gpu: bool) -> Iterator[Fault]:
        """What `backend` does not know, and what needs a GPU; Triton ignores much of it in silence."""
        name = f"{backend.name} of an image of variant cpu" if backend.in_python and backend.name != "python" else backend.name
        has = () if backend.in_python else tuple(known for owner, known in ACCELERATORS if owner == backend.name)
        if self.graph_level is not None and backend.name not in GRAPH_LEVEL:
            yield Fault(("graphLevel",), f"backend {name} has no graph levels, only {' and '.join(GRAPH_LEVEL)} have", "drop it")
        if self.accelerator is not None and self.accelerator not in has:
            reason = f"backend {name} has no accelerator {self.accelerator}, it has: {', '.join(has) or 'none'}"
            yield Fault(("accelerator",), reason, "choose one of these, or drop it")
        elif self.accelerator is not None and (self.accelerator != "openvino") != on_gpu:
            place, kind = ("GPUs", "gpu") if self.accelerator != "openvino" else ("CPUs", "cpu")
            yield Fault(("accelerator",), f"{self.accelerator} runs on {place}", f"set instances.kind: {kind}, or drop it")
        if self.cuda_graphs and backend.name != "tensorrt":
            yield Fault(("cudaGraphs",), f"only backend tensorrt has CUDA graphs, this is {name}", "drop it")
        for key, value in (
            ("inputPinnedMemory", self.input_pinned_memory),
            ("outputPinnedMemory", self.output_pinned_memory),
            ("gatherKernelBufferThreshold", self.gather_kernel_buffer_threshold),
        ):
            if value is not None and not on_gpu:
                yield Fault((key,), "is about copies between host and GPU, and no instance is on a GPU", f"drop {key}, or set instances.kind: gpu")


# onnxruntime_backend src/onnxruntime.cc, tensorflow_backend src/tensorflow.cc, both of triton-inference-server.
GRAPH_LEVEL = ("onnxruntime", "tensorflow")
ACCELERATORS = (("onnxruntime", "tensorrt"), ("onnxruntime", "openvino"), ("tensorflow", "tensorrt"), ("tensorflow", "auto-mixed-precision"))
