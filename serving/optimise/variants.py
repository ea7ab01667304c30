"""The variants that stand beside the original in a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxruntime.quantization import CalibrationMethod

from serving.optimise import recipes, runtimes
from serving.optimise.recipes import Recipe
from serving.optimise.runtimes import Level, Opener

# What every other variant is compared with: the network as shipped, at the level at which it is served.
REFERENCE = "fp32"
# Enough to see a fault in a variant that should change nothing.
FEW = 200


@dataclass(frozen=True)
class Variant:
    """One way to run the model, or the published `version` of it. `evaluated`: examples it is judged on, all for None; a slow one is timed with one example at a call."""

    name: str
    what: str
    make: Recipe = recipes.as_shipped
    level: Level = "all"
    runtime: Opener = runtimes.onnxruntime_cpu
    evaluated: int | None = None
    slow: bool = False
    version: int | None = None


VARIANTS = (
    Variant("fp32-none", "as shipped, graph as it is", level="none", evaluated=FEW),
    Variant("fp32-basic", "as shipped, constants folded, dead nodes removed", level="basic", evaluated=FEW),
    Variant("fp32-extended", "as shipped, operators fused", level="extended", evaluated=FEW),
    Variant(REFERENCE, "as shipped, operators fused and laid out for this CPU: as served"),
    Variant("fp16", "half precision", recipes.fp16),
    Variant("int8-dynamic", "matrix products in INT8, ranges found at each call", recipes.int8_dynamic),
    Variant("int8-dynamic-7bit", "the same with 7-bit weights, a scale per column", recipes.int8_dynamic_7bit),
    Variant("int8-static-minmax", "convolutions in INT8, calibrated: extremes", recipes.int8_static(CalibrationMethod.MinMax)),
    Variant("int8-static-entropy", "convolutions in INT8, calibrated: least divergence", recipes.int8_static(CalibrationMethod.Entropy)),
    Variant("int8-static-percentile", "convolutions in INT8, calibrated: 99.999 % of the values", recipes.int8_static(CalibrationMethod.Percentile)),
    Variant("tensorrt-fp16", "TensorRT, half precision", runtime=runtimes.tensorrt),
    Variant("tvm", "Apache TVM, not tuned", runtime=runtimes.tvm, evaluated=FEW, slow=True),
)


def by_name(variants: Sequence[Variant]) -> Mapping[str, Variant]:
    return {variant.name: variant for variant in variants}
