"""The check of a model.yaml: a request and its answer, tried on every version in the finished image, and what the warm-up asks with. Pure but for files.

A value is one element, which fills axes of any size and of size 1, or lists in lists, one for each axis: text for BYTES, `{file: <name>}` for BYTES
of a file below model.yaml's folder, true and false for BOOL, numbers for the others.
"""

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, JsonValue

from components.core.spec import Spec
from components.errors import ManifestError
from serving.model_sources import FILE_NAME

if TYPE_CHECKING:
    # Its module needs numpy, which an init step has no time for.
    from serving.tensors import Tensor

# Formats of `struct`; BF16 is the upper half of an FP32.
INTEGERS = {"UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q"}
FLOATS = {"FP16": "e", "FP32": "f", "FP64": "d", "BF16": "f"}
MAX_SHOWN = 60


class CheckSpec(Spec):
    """What cannot answer it is not published."""

    inputs: Annotated[dict[str, JsonValue], Field(min_length=1, description="Value of every input, by name.")]
    output: Annotated[str, Field(description="Name of the output to compare.")]
    expected: Annotated[JsonValue, Field(description="Its value.")]
    tolerance: Annotated[
        float,
        Field(
            strict=False, ge=0, allow_inf_nan=False, description="How far a number may be from the one expected; 0: equal in the output's datatype."
        ),
    ] = 0


@dataclass(frozen=True)
class CheckTensor:
    """A tensor in the binary form of the protocol: little-endian elements, BYTES with their length in four bytes before them."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    content: bytes


def sole_document(tensors: Sequence[CheckTensor]) -> bytes:
    """The file or text of a check that asks with one and nothing else. ManifestError for another one."""
    if [(tensor.datatype, set(tensor.shape)) for tensor in tensors] != [("BYTES", {1})]:
        raise ManifestError("the model's check does not ask with one file or text", hint="ask a model that takes one")
    return tensors[0].content[4:]


def check_faults(check: CheckSpec, inputs: "Sequence[Tensor]", outputs: "Sequence[Tensor]") -> Iterator[str]:
    """What of the check is no request to a model of these tensors, or no answer of it: key path, value and reason."""
    if set(check.inputs) != (wanted := {tensor.name for tensor in inputs}):
        yield f"check.inputs: names {', '.join(sorted(check.inputs))}, and the model's inputs are {', '.join(sorted(wanted))}"
    asked = [(f"check.inputs.{tensor.name}", tensor, check.inputs[tensor.name]) for tensor in inputs if tensor.name in check.inputs]
    compared = next((tensor for tensor in outputs if tensor.name == check.output), None)
    if compared is None:
        yield f"check.output = {check.output!r}: the model's outputs are {', '.join(tensor.name for tensor in outputs)}"
    else:
        asked.append(("check.expected", compared, check.expected))
        if check.tolerance and compared.datatype in {"BYTES", "BOOL"}:
            yield f"check.tolerance = {check.tolerance}: output {compared.name!r} is {compared.datatype}, which has no tolerance"
    for where, tensor, value in asked:
        try:
            _encoded(tensor, value, folder=None)
        except ValueError as error:
            yield f"{where}: {error}"


def check_inputs(check: CheckSpec, inputs: "Sequence[Tensor]", folder: Path) -> tuple[CheckTensor, ...]:
    """The request, with files from `folder`. ManifestError for a file that cannot be read; ValueError for what `check_faults` tells."""
    return tuple(_encoded(tensor, check.inputs[tensor.name], folder) for tensor in inputs)


def check_answer(check: CheckSpec, outputs: "Sequence[Tensor]", folder: Path) -> CheckTensor:
    """The answer that is expected; errors as of `check_inputs`."""
    [tensor] = [tensor for tensor in outputs if tensor.name == check.output]
    return _encoded(tensor, check.expected, folder)


def _encoded(tensor: "Tensor", value: JsonValue, folder: Path | None) -> CheckTensor:
    """Without `folder` nothing is read: a file counts as empty."""
    shape = _shape(value) if isinstance(value, list) else (1,) * len(tensor.dims)
    dims = list(tensor.dims)
    if len(shape) != len(dims) or any(dim not in (-1, size) for dim, size in zip(dims, shape, strict=True)):
        what = f"has shape {list(shape)}" if isinstance(value, list) else "is one element"
        raise ValueError(f"{what}, and {tensor.name!r} has dims {dims} (-1: any size)")
    content = b"".join(_element(tensor.datatype, element, folder) for element in _flat(value))
    return CheckTensor(tensor.name, tensor.datatype, shape, content)


def _shape(value: JsonValue) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    if not value:
        raise ValueError("an empty list holds nothing to ask with")
    shapes = {_shape(part) for part in value}
    if len(shapes) > 1:
        raise ValueError("lists of one axis are equally long")
    return (len(value), *shapes.pop())


def _flat(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, list):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def _element(datatype: str, value: JsonValue, folder: Path | None) -> bytes:
    """One element as the protocol has it; ValueError for a value of another type or beyond its range."""
    try:
        if datatype == "BYTES" and isinstance(value, str | dict):
            content = value.encode() if isinstance(value, str) else _file(value, folder)
            return struct.pack("<I", len(content)) + content
        if datatype == "BOOL" and isinstance(value, bool):
            return struct.pack("<?", value)
        if datatype in INTEGERS and isinstance(value, int) and not isinstance(value, bool):
            return struct.pack(f"<{INTEGERS[datatype]}", value)
        if datatype in FLOATS and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            packed = struct.pack(f"<{FLOATS[datatype]}", value)
            return _upper_half(packed) if datatype == "BF16" else packed
    except (struct.error, OverflowError):
        raise ValueError(f"{_shown(value)} is beyond {datatype}") from None
    raise ValueError(f"{_shown(value)} is no {datatype}")


def _upper_half(packed: bytes) -> bytes:
    """An FP32 rounded to BF16, to even where it lies between two."""
    bits = int.from_bytes(packed, "little")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).to_bytes(2, "little")


def _file(value: Mapping[str, JsonValue], folder: Path | None) -> bytes:
    name = value.get("file")
    if set(value) != {"file"} or not isinstance(name, str) or FILE_NAME.fullmatch(name) is None:
        raise ValueError(f"{_shown(value)} is no {{file: <name of a file below model.yaml's folder>}}")
    if folder is None:
        return b""
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise ManifestError(f"check: file {folder / name} cannot be read: {error.strerror}", hint="put the file there") from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
