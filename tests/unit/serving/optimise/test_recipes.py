"""What each recipe makes of a network whose arithmetic is known."""

import json
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnxruntime.quantization import CalibrationMethod

from serving.image.transform import CALIBRATION
from serving.optimise import recipes
from serving.optimise.runtimes import onnxruntime_cpu, operators
from tests.unit.serving.optimise.tiny import TinyAdapter, contents, rows, write_network

RECIPES = {
    "as shipped": recipes.as_shipped,
    "fp16": recipes.fp16,
    "int8 dynamic": recipes.int8_dynamic,
    "int8 dynamic, 7 bits": recipes.int8_dynamic_7bit,
    **{f"int8 static, {method.name}": recipes.int8_static(method) for method in list(CalibrationMethod)[:3]},
}


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return write_network(tmp_path_factory.mktemp("network") / "model.onnx")


def made(network, folder, recipe, given=None):
    folder.mkdir()
    recipe(network, folder / "model.onnx", lambda: TinyAdapter().feeds(given or contents(50)))
    return folder / "model.onnx"


def weight_types(path):
    return Counter(tensor.data_type for tensor in onnx.load_model(path).graph.initializer if len(tensor.dims) > 1)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_every_variant_scores_nearly_as_the_original(network, tmp_path, recipe):
    given = {"x": rows(contents(20, seed=3))}
    original, variant = (onnxruntime_cpu(path, "all", {}).run(None, given)[0] for path in (network, made(network, tmp_path / "variant", recipe)))
    assert np.abs(original - variant).max() < 0.1 * np.abs(original).max()


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_the_same_input_gives_the_same_bytes(network, tmp_path, recipe):
    assert made(network, tmp_path / "once", recipe).read_bytes() == made(network, tmp_path / "again", recipe).read_bytes()


def test_half_precision_is_inside_and_callers_see_no_change(network, tmp_path):
    model = onnx.load_model(made(network, tmp_path / "variant", recipes.fp16))
    assert {tensor.type.tensor_type.elem_type for tensor in (*model.graph.input, *model.graph.output)} == {TensorProto.FLOAT}
    assert weight_types(tmp_path / "variant" / "model.onnx") == {TensorProto.FLOAT16: 2}


def test_dynamic_quantisation_changes_matrix_products_only(network, tmp_path):
    path = made(network, tmp_path / "variant", recipes.int8_dynamic)
    assert operators(path)["MatMulInteger"] == 1
    assert operators(path)["Conv"] == 1
    assert weight_types(path) == {TensorProto.FLOAT: 1, TensorProto.INT8: 1}


def test_static_quantisation_changes_convolutions_only(network, tmp_path):
    path = made(network, tmp_path / "variant", recipes.int8_static(CalibrationMethod.MinMax))
    assert operators(path)["MatMul"] == 1
    assert operators(path)["QuantizeLinear"] == 2
    assert weight_types(path) == {TensorProto.FLOAT: 1, TensorProto.INT8: 1}


def test_weights_keep_to_seven_bits(network, tmp_path):
    model = onnx.load_model(made(network, tmp_path / "variant", recipes.int8_static(CalibrationMethod.MinMax)))
    [weights] = [
        onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer if tensor.data_type == TensorProto.INT8 and len(tensor.dims) > 1
    ]
    assert np.abs(weights.astype(int)).max() == 64


def test_extremes_are_those_of_the_calibration_examples(network, tmp_path):
    given = contents(50)
    made(network, tmp_path / "variant", recipes.int8_static(CalibrationMethod.MinMax), given)
    ranges = json.loads((tmp_path / "variant" / CALIBRATION).read_text())["data"]["x"]
    assert (ranges["lowest"]["data"], ranges["highest"]["data"]) == ([rows(given).min()], [rows(given).max()])


def test_a_calibration_on_other_examples_gives_another_network(network, tmp_path):
    recipe = recipes.int8_static(CalibrationMethod.MinMax)
    narrow = [bytes([100] * 8), bytes([120] * 8)]
    assert made(network, tmp_path / "wide", recipe).read_bytes() != made(network, tmp_path / "narrow", recipe, narrow).read_bytes()
