"""How each variant of a network is made from the original. What may be published is made by serving/image/transform.py alone, as in the image build."""

import contextlib
import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_dynamic
from onnxruntime.quantization.calibrate import create_calibrator, save_tensors_data
from onnxruntime.transformers.float16 import convert_float_to_float16

from serving.image.transform import CALIBRATION, STATIC_OPERATORS, quantise_dynamic_int8, quantise_static_int8
from serving.optimise.adapters import Feed

Feeds = Callable[[], Iterator[Feed]]
# Each end of a range for itself: activations lean to one side, and half of the steps of a symmetric range are never used.
ASYMMETRIC = {"symmetric": False}
# Original, place of the result, examples that may calibrate.
Recipe = Callable[[Path, Path, Feeds], None]


def as_shipped(source: Path, target: Path, _feeds: Feeds) -> None:
    shutil.copyfile(source, target)


def fp16(source: Path, target: Path, _feeds: Feeds) -> None:
    """Half precision inside; inputs and outputs keep their type, so that callers need not change."""
    onnx.save_model(convert_float_to_float16(onnx.load_model(source), keep_io_types=True), target)


def int8_dynamic(source: Path, target: Path, _feeds: Feeds) -> None:
    quantise_dynamic_int8(source, target)


def int8_dynamic_7bit(source: Path, target: Path, _feeds: Feeds) -> None:
    """As int8_dynamic with weights of 7 bits and a scale per column: nothing saturates on CPUs without VNNI."""
    quantize_dynamic(source, target, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"], per_channel=True, reduce_range=True)


def int8_static(method: CalibrationMethod) -> Recipe:
    """Ranges by `method` from the calibration examples, kept beside the result; then the image's own transformation."""

    def make(source: Path, target: Path, feeds: Feeds) -> None:
        with TemporaryDirectory() as folder:
            original = Path(folder, source.name)
            shutil.copyfile(source, original)
            calibrate(original, feeds(), method, original.with_name(CALIBRATION))
            quantise_static_int8(original, target)
            shutil.copyfile(original.with_name(CALIBRATION), target.with_name(CALIBRATION))

    return make


def calibrate(network: Path, feeds: Iterator[Feed], method: CalibrationMethod, target: Path) -> None:
    """Write the ranges that the tensors around the quantised operators take over all `feeds`."""
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        augmented = str(Path(folder, "augmented.onnx"))
        options = {"augmented_model_path": augmented, "calibrate_method": method, "extra_options": ASYMMETRIC}
        calibrator = create_calibrator(network, STATIC_OPERATORS, **options)
        calibrator.collect_data(_Reader(feeds))
        save_tensors_data(calibrator.compute_data(), target)


class _Reader(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime ships no types
    def __init__(self, feeds: Iterator[Feed]) -> None:
        self._feeds = feeds

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)
