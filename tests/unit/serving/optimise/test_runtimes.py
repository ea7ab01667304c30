"""What runs a network, and what says that it does not."""

import importlib.util

import numpy as np
import onnx
import onnxruntime
import pytest

from serving.optimise import runtimes
from serving.optimise.runtimes import CannotRunError, onnxruntime_cpu, operators, optimised_operators, tensorrt, tvm, with_fixed_axes
from tests.unit.serving.optimise.tiny import contents, rows, write_network


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return write_network(tmp_path_factory.mktemp("network") / "model.onnx")


def test_each_level_does_what_it_is_named_for(network):
    assert optimised_operators(network, "none") == operators(network)
    assert optimised_operators(network, "basic")["Gemm"] == 1
    assert "MatMul" not in optimised_operators(network, "basic")
    assert any(name.startswith("com.microsoft.nchwc.") or name == "Conv" for name in optimised_operators(network, "all"))


@pytest.mark.parametrize("level", ["none", "basic", "extended", "all"])
def test_no_level_changes_what_the_network_says(network, level):
    given = {"x": rows(contents(5))}
    assert np.allclose(onnxruntime_cpu(network, level, {}).run(None, given)[0], onnxruntime_cpu(network, "none", {}).run(None, given)[0], atol=1e-5)


def test_tensorrt_without_its_provider_says_so(network, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(CannotRunError, match="has no TensorrtExecutionProvider"):
        tensorrt(network, "all", {})


def test_a_tensorrt_that_falls_back_to_the_cpu_is_not_reported_as_tensorrt(network, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [runtimes.TENSORRT, runtimes.CPU])
    session = onnxruntime_cpu(network, "all", {})
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *_, **__: session)
    with pytest.raises(CannotRunError, match="did not start"):
        tensorrt(network, "all", {})


def test_tvm_that_is_not_installed_says_so(network, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(CannotRunError, match="apache-tvm is not installed"):
        tvm(network, "all", {})


def test_a_compiler_that_needs_every_size_gets_every_size(network):
    model = with_fixed_axes(network, {"rows": 1})
    onnx.checker.check_model(model)
    assert [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim] == [1, 1, 8]
