"""Files to tensors, tensors to JSON."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from tritonclient.utils import deserialize_bytes_tensor, serialize_byte_tensor

from components.errors import ManifestError
from serving.model_manifest import SignatureSpec, model_manifest, model_names
from serving.tensors import file_input, plain, values_of_items

OUTPUT = {"name": "label", "datatype": "BYTES", "dims": [-1, 1]}


def inputs_of(*inputs):
    named = [{"name": f"in{n}", "datatype": datatype, "dims": dims} for n, (datatype, dims) in enumerate(inputs)]
    return SignatureSpec.model_validate({"inputs": named, "outputs": [OUTPUT]}).inputs


@effort(deadline=None)
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5))
def test_files_arrive_byte_for_byte_in_a_tensor_with_their_axis_first(files):
    tensor = file_input(inputs_of(("BYTES", [-1, 1])), "").tensor(files)
    assert tensor.shape == (len(files), 1)
    assert list(deserialize_bytes_tensor(serialize_byte_tensor(tensor).item())) == files


@pytest.mark.parametrize(
    ("datatype", "dims", "shape"),
    [("BYTES", [1], (1,)), ("BYTES", [-1], (1,)), ("BYTES", [-1, 1, 1], (1, 1, 1)), ("UINT8", [-1], (4,)), ("UINT8", [-1, -1], (1, 4))],
)
def test_one_file_takes_the_shape_the_model_asks_for(datatype, dims, shape):
    assert file_input(inputs_of((datatype, dims)), "").tensor([b"\x00\x01\xff\x00"]).shape == shape


def test_only_files_that_are_elements_are_joined_in_one_tensor():
    assert file_input(inputs_of(("BYTES", [-1, 1])), "").joins
    assert not file_input(inputs_of(("BYTES", [1])), "").joins
    assert not file_input(inputs_of(("UINT8", [-1, -1])), "").joins


@pytest.mark.parametrize(
    "inputs",
    [[("FP32", [-1, 3])], [("BYTES", [-1, 2])], [("UINT8", [-1, 224])], [("UINT8", [3, -1])], [("BYTES", [-1, 1]), ("BYTES", [-1, 1])]],
)
def test_a_model_that_takes_no_file_is_refused(inputs):
    with pytest.raises(ManifestError, match="a file is") as refused:
        file_input(inputs_of(*inputs), "in the words of who asks")
    assert refused.value.hint == "in the words of who asks"


def test_every_model_of_the_repository_that_takes_one_input_of_bytes_can_have_a_front():
    takes_files = [name for name in model_names() if [each.datatype for each in model_manifest(name).signature.inputs] == ["BYTES"]]
    assert "magika" in takes_files
    for name in takes_files:
        assert file_input(model_manifest(name).signature.inputs, "").datatype == "BYTES"


def test_outputs_are_given_to_the_items_they_belong_to():
    labels = np.array([[b"a"], [b"b"]], dtype=np.object_)
    scores = np.array([[0.5, 1.5], [2.5, 3.5]], dtype=np.float32)
    assert values_of_items({"label": labels, "scores": scores}, 2) == [
        {"label": "a", "scores": [0.5, 1.5]},
        {"label": "b", "scores": [2.5, 3.5]},
    ]


def test_a_single_item_owns_an_output_without_an_axis_of_items():
    assert values_of_items({"scores": np.arange(3)}, 1) == [{"scores": [0, 1, 2]}]


def test_where_items_are_joined_an_output_without_their_axis_is_no_answer():
    """As of a Python backend whose numpy is broken."""
    with pytest.raises(ValueError, match="shape \\[0, 1\\] for 1 items"):
        values_of_items({"label": np.empty((0, 1), dtype=np.object_)}, 1, joined=True)


def test_an_output_with_fewer_parts_than_items_is_an_error_and_not_a_mixup():
    with pytest.raises(ValueError, match="'label' has shape"):
        values_of_items({"label": np.array([[b"a"]], dtype=np.object_)}, 2)
    with pytest.raises(ValueError, match="shape \\[0\\]"):
        values_of_items({"label": np.empty(0, dtype=np.object_)}, 2)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\xff\x00", {"b64": "/wA="}),
        ("é".encode(), "é"),
        (np.float32("nan"), None),
        (np.float64("inf"), None),
        (np.bool_(1), True),
        (np.int64(2**62), 2**62),
        (np.empty(0), []),
        (np.array([[1]]), 1),
    ],
)
def test_every_value_has_a_json_of_its_own(value, said):
    assert plain(value) == said
    json.dumps(plain(value), allow_nan=False)


@effort(deadline=None)
@given(st.lists(st.one_of(st.floats(width=32), st.integers(-5, 5)), max_size=6))
def test_numbers_are_always_json(numbers):
    json.dumps(plain(np.array(numbers, dtype=np.float32)), allow_nan=False)
