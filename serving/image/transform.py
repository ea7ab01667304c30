"""How a derived file of a version is made from the one it is derived from. Runs in the image build and in the optimisation pipeline, which judges it.

Needs onnx and onnxruntime only. The same input gives the same bytes on every machine: nothing here runs a network, and model.yaml names their hash.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import onnxruntime
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static

# The file beside a network with the value ranges of its tensors, as onnxruntime's calibration wrote it.
CALIBRATION = "calibration.json"
# 7 bits for weights: without VNNI, x86 adds pairs of 8-bit products in 16 bits, which saturate.
STATIC_OPERATORS = ("Conv",)
STATIC_INT8 = {"per_channel": True, "reduce_range": True, "activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}


def quantise_dynamic_int8(source: Path, target: Path) -> None:
    """Weights of the matrix products become 8-bit integers; the ranges of what they are multiplied with are found at each call.

    Convolutions stay: onnxruntime has no fast kernel for them with ranges found at a call (magika's took 30 ms instead of 10 ms).
    """
    quantize_dynamic(source, target, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])


def quantise_static_int8(source: Path, target: Path) -> None:
    """Convolutions compute in 8-bit integers, with the ranges in the calibration file beside `source`."""
    ranges = source.with_name(CALIBRATION)
    method = CalibrationMethod[json.loads(ranges.read_text(encoding="utf-8"))["calibration_method"]["value"].rpartition(".")[2]]
    quantize_static(
        source,
        target,
        None,
        quant_format=QuantFormat.QDQ,
        op_types_to_quantize=list(STATIC_OPERATORS),
        calibrate_method=method,
        calibration_cache_path=ranges,
        **STATIC_INT8,
    )


def onnx_characters(source: Path, target: Path) -> None:
    """The table of characters among the network's metadata, one a line."""
    table = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]).get_modelmeta().custom_metadata_map["character"]
    target.write_text("".join(f"{character}\n" for character in table.splitlines()), encoding="utf-8")


TRANSFORMATIONS: Mapping[str, Callable[[Path, Path], None]] = {
    "quantise-dynamic-int8": quantise_dynamic_int8,
    "quantise-static-int8": quantise_static_int8,
    "onnx-characters": onnx_characters,
}


def transform(path: Path, transformation: str, sha256: str) -> None:
    """Put what `transformation` makes of `path` in its place; ValueError when it is not the file with this hash."""
    derived = path.with_suffix(".derived")
    TRANSFORMATIONS[transformation](path, derived)
    actual = hashlib.sha256(derived.read_bytes()).hexdigest()
    if actual != sha256:
        raise ValueError(f"{transformation} made a {path} with SHA-256 {actual}, but model.yaml says {sha256}: this is not the file that was judged")
    derived.replace(path)


def main() -> None:
    """Arguments: transformations.json, the repository it speaks of."""
    listing, repository = map(Path, sys.argv[1:])
    for entry in json.loads(listing.read_text(encoding="utf-8")):
        try:
            transform(repository / entry["path"], entry["transformation"], entry["sha256"])
        except ValueError as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
