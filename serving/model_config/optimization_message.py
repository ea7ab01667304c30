"""Switches of the backends as Triton's message, and back."""

from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from serving.model_config.optimization import OptimizationSpec

MIB = 1024 * 1024
Policy = pb.ModelOptimizationPolicy
Accelerator = Policy.ExecutionAccelerators.Accelerator
TRITON_NAMES = {"tensorrt": "tensorrt", "openvino": "openvino", "auto-mixed-precision": "auto_mixed_precision"}
PRECISION, WORKSPACE = "precision_mode", "max_workspace_size_bytes"


def optimization(spec: OptimizationSpec) -> pb.ModelOptimizationPolicy | None:
    """None for a spec that says nothing."""
    if spec == OptimizationSpec():
        return None
    message = Policy(gather_kernel_buffer_threshold=spec.gather_kernel_buffer_threshold or 0)
    if spec.graph_level is not None:
        message.graph.level = spec.graph_level
    if spec.cuda_graphs:
        message.cuda.graphs = True
    for field, value in (("input_pinned_memory", spec.input_pinned_memory), ("output_pinned_memory", spec.output_pinned_memory)):
        if value is not None:
            getattr(message, field).CopyFrom(Policy.PinnedMemoryBuffer(enable=value))
    if spec.accelerator is not None:
        accelerators = message.execution_accelerators
        owner = accelerators.cpu_execution_accelerator if spec.accelerator == "openvino" else accelerators.gpu_execution_accelerator
        owner.append(Accelerator(name=TRITON_NAMES[spec.accelerator], parameters=_parameters(spec)))
    return message


def optimization_values(config: pb.ModelConfig) -> dict[str, Any]:
    """Values of an OptimizationSpec, as the stack file spells them; of several accelerators, the first."""
    message = config.optimization
    values: dict[str, Any] = {
        "graphLevel": message.graph.level or None,
        "cudaGraphs": message.cuda.graphs,
        "gatherKernelBufferThreshold": message.gather_kernel_buffer_threshold or None,
    }
    for key, field in (("inputPinnedMemory", "input_pinned_memory"), ("outputPinnedMemory", "output_pinned_memory")):
        if message.HasField(field):
            values[key] = getattr(message, field).enable
    accelerators = [*message.execution_accelerators.gpu_execution_accelerator, *message.execution_accelerators.cpu_execution_accelerator]
    return {**values, **_accelerator_values(accelerators[0])} if accelerators else values


def _parameters(spec: OptimizationSpec) -> dict[str, str]:
    precision = {PRECISION: spec.precision.upper()} if spec.precision else {}
    return precision | ({WORKSPACE: str(spec.workspace_mib * MIB)} if spec.workspace_mib else {})


def _accelerator_values(accelerator: Any) -> dict[str, Any]:
    names = {triton: name for name, triton in TRITON_NAMES.items()}
    workspace = accelerator.parameters.get(WORKSPACE, "")
    precision = accelerator.parameters.get(PRECISION, "").lower()
    return {
        "accelerator": names.get(accelerator.name),
        "precision": precision if precision in {"fp32", "fp16"} else None,
        "workspaceMib": int(workspace) // MIB or None if workspace.isdecimal() else None,
    }
