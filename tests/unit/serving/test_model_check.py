"""The check of a model: every datatype as the protocol has it, and what is no request is told with key, value and reason."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.errors import ManifestError
from serving.image import selfcheck
from serving.model_check import CheckSpec, check_answer, check_faults, check_inputs, sole_document
from serving.model_manifest import TensorSpec

DTYPES = {f"{kind}{bits}": f"<{'u' if kind == 'UINT' else 'i'}{bits // 8}" for kind in ("UINT", "INT") for bits in (8, 16, 32, 64)}
DTYPES |= {"FP16": "<f2", "FP32": "<f4", "FP64": "<f8", "BOOL": "?"}


def tensor(datatype="FP32", dims=(-1, 4), name="x"):
    return TensorSpec(name=name, datatype=datatype, dims=dims)


def check_of(inputs, expected=0, output="y", **more):
    return CheckSpec.model_validate_json(json.dumps({"inputs": inputs, "output": output, "expected": expected, **more}))


INPUT, OUTPUT = tensor(), tensor(name="y", dims=(-1, 1))


def faults(inputs, expected=0, tensors=(INPUT,), outputs=(OUTPUT,), **more):
    return list(check_faults(check_of(inputs, expected, **more), tensors, outputs))


@pytest.mark.parametrize("datatype", sorted(DTYPES))
@given(data=st.data())
def test_a_value_has_the_bytes_that_numpy_gives_it_and_the_image_reads_them_back(datatype, data):
    dtype = np.dtype(DTYPES[datatype])
    floats = st.floats(allow_nan=False, allow_infinity=False, width=16 if datatype == "FP16" else 32)
    bounds = None if dtype.kind in "fb" else np.iinfo(dtype)
    element = floats if dtype.kind == "f" else st.booleans() if bounds is None else st.integers(bounds.min, bounds.max)
    values = data.draw(st.lists(st.lists(element, min_size=2, max_size=2), min_size=1, max_size=3))
    [made] = check_inputs(check_of({"x": values}), (tensor(datatype, (-1, 2)),), Path())
    assert (made.shape, made.content) == ((len(values), 2), np.array(values, dtype).tobytes())
    assert selfcheck.elements(datatype, made.content) == [element for row in values for element in row]


def test_bf16_is_rounded_to_the_nearest():
    values = [1.0, -2.5, 3.14159, 1 + 2**-8, 1 + 3 * 2**-8]
    [made] = check_inputs(check_of({"x": values}), (tensor("BF16", (-1,)),), Path())
    assert selfcheck.elements("BF16", made.content) == [1.0, -2.5, 3.140625, 1.0, 1.015625]


def test_texts_and_files_are_bytes_with_their_length(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\0\xff")
    [made] = check_inputs(check_of({"x": [["żó"], [{"file": "a.png"}]]}), (tensor("BYTES", (-1, 1)),), tmp_path)
    assert made.content == b"\4\0\0\0" + "żó".encode() + b"\2\0\0\0\0\xff"
    [sole] = check_inputs(check_of({"x": {"file": "a.png"}}), (tensor("BYTES", (-1, 1)),), tmp_path)
    assert (sole.shape, sole_document([sole])) == ((1, 1), b"\0\xff")
    with pytest.raises(ManifestError, match="does not ask with one file or text"):
        sole_document([made])


def test_a_file_that_is_not_there_is_told_when_it_is_needed(tmp_path):
    with pytest.raises(ManifestError, match=r"gone\.png cannot be read: No such file"):
        check_inputs(check_of({"x": {"file": "gone.png"}}), (tensor("BYTES", (-1, 1)),), tmp_path)


def test_several_inputs_are_sent_in_the_order_of_the_signature():
    made = check_inputs(check_of({"flag": True, "x": [[1, 2, 3, 4]]}), (tensor(), tensor("BOOL", (1,), "flag")), Path())
    assert [(each.name, each.datatype, each.shape, len(each.content)) for each in made] == [("x", "FP32", (1, 4), 16), ("flag", "BOOL", (1,), 1)]


@pytest.mark.parametrize(
    ("inputs", "datatype", "reason"),
    [
        ({"x": [1, 2, 3, 4]}, "FP32", r"check.inputs.x: has shape [4], and 'x' has dims [-1, 4] (-1: any size)"),
        ({"x": [[1, 2, 3]]}, "FP32", "has shape [1, 3]"),
        ({"x": 1}, "FP32", "is one element, and 'x' has dims [-1, 4]"),
        ({"x": [[1, 2, 3, 4], [1]]}, "FP32", "lists of one axis are equally long"),
        ({"x": [[1, 2, 3, [4]]]}, "FP32", "lists of one axis are equally long"),
        ({"x": []}, "FP32", "an empty list holds nothing"),
        ({"x": [["1", 2, 3, 4]]}, "FP32", "'1' is no FP32"),
        ({"x": [[True, 2, 3, 4]]}, "FP32", "True is no FP32"),
        ({"x": [[None, 2, 3, 4]]}, "FP32", "None is no FP32"),
        ({"x": [[float("nan"), 2, 3, 4]]}, "FP32", "nan is no FP32"),
        ({"x": [[1e39, 2, 3, 4]]}, "FP32", "1e+39 is beyond FP32"),
        ({"x": [[10**400, 2, 3, 4]]}, "FP64", "is beyond FP64"),
        ({"x": [[70000, 2, 3, 4]]}, "FP16", "70000 is beyond FP16"),
        ({"x": [[256, 2, 3, 4]]}, "UINT8", "256 is beyond UINT8"),
        ({"x": [[1.0, 2, 3, 4]]}, "INT64", "1.0 is no INT64"),
        ({"x": [[1, 2, 3, 4]]}, "BOOL", "1 is no BOOL"),
        ({"x": [[1, 2, 3, 4]]}, "BYTES", "1 is no BYTES"),
        ({"x": [[{"file": "../a"}, "a", "a", "a"]]}, "BYTES", "is no {file:"),
        ({"x": [[{"b64": "a"}, "a", "a", "a"]]}, "BYTES", "is no {file:"),
        ({"z": 1}, "FP32", "check.inputs: names z, and the model's inputs are x"),
        ({"x": [[1, 2, 3, 4]], "z": 1}, "FP32", "check.inputs: names x, z, and the model's inputs are x"),
    ],
)
def test_what_is_no_request_of_the_model_is_refused(inputs, datatype, reason):
    [fault] = faults(inputs, tensors=(tensor(datatype),))
    assert reason in fault


def test_what_is_no_answer_of_the_model_is_refused():
    asked = {"x": [[1, 2, 3, 4]]}
    assert faults(asked, output="z") == ["check.output = 'z': the model's outputs are y"]
    assert "check.expected: 'a' is no FP32" in faults(asked, "a")
    assert "check.tolerance = 0.5: output 'y' is BYTES" in faults(asked, "a", outputs=(tensor("BYTES", (-1, 1), "y"),), tolerance=0.5)[0]


def compared(output, expected, tolerance=0.0, datatype="FP32"):
    """What the check in the image says of this output; None when it is as expected."""
    due = check_answer(check_of({"x": 0}, expected), (tensor(datatype, (-1,), "y"),), Path())
    found = check_answer(check_of({"x": 0}, output), (tensor(datatype, (-1,), "y"),), Path())
    check = {"model": "m", "version": 1, "tolerance": tolerance, "expected": {"name": "y", "datatype": datatype, "shape": list(due.shape)}}
    try:
        selfcheck.compare(check, ({"datatype": datatype, "shape": list(found.shape)}, found.content), due.content)
    except SystemExit as wrong:
        return str(wrong.code)
    return None


def test_numbers_may_differ_by_the_tolerance_and_not_by_more():
    assert compared([1.0, 2.25], [1.0, 2.0], tolerance=0.25) is None
    assert "the first that differs is element 1: 2.25, not 2.0" in compared([1.0, 2.25], [1.0, 2.0], tolerance=0.125)
    assert compared([0.1], [0.1]) is None
    assert "within" not in compared([0.1], [0.2])


def test_another_shape_or_text_is_not_what_was_expected():
    assert "y is FP32 of shape [1], expected FP32 of shape [2]" in compared([1.0], [1.0, 1.0])
    assert "y is 'cat', expected 'dog'" in compared(["cat"], ["dog"], datatype="BYTES")
    assert compared(["cat"], ["cat"], datatype="BYTES") is None


def test_what_is_no_number_is_within_no_tolerance():
    check = {"model": "m", "version": 1, "tolerance": 1e9, "expected": {"name": "y", "datatype": "FP32", "shape": [1]}}
    with pytest.raises(SystemExit, match="y is nan"):
        selfcheck.compare(check, ({"datatype": "FP32", "shape": [1]}, np.float32("nan").tobytes()), np.float32(1).tobytes())
