"""Files to tensors and tensors to JSON, for everyone who asks a model about files. Pure."""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from components.errors import ManifestError

VECTOR_TYPES = {"UINT8": np.uint8, "INT8": np.int8}


@dataclass(frozen=True)
class FileInput:
    """The one input of a model that takes files; `datatype` BYTES holds a file as one element, UINT8 and INT8 as a vector of its bytes."""

    name: str
    datatype: str
    dims: tuple[int, ...]

    @property
    def joins(self) -> bool:
        """Whether several files fit into one tensor: vectors of different lengths do not."""
        return self.datatype == "BYTES" and self.dims[0] == -1

    def tensor(self, files: Sequence[bytes]) -> np.ndarray[Any, Any]:
        """The tensor of `files`: their axis first where there is one."""
        if self.datatype == "BYTES":
            # Filled one by one: from a list numpy would make fixed-width strings and cut zero bytes off their ends.
            tensor = np.empty(len(files), dtype=np.object_)
            tensor[:] = list(files)
            return tensor.reshape([len(files), *[1] * (len(self.dims) - 1)])
        (content,) = files
        return np.frombuffer(content, dtype=VECTOR_TYPES[self.datatype]).reshape([*[1] * (len(self.dims) - 1), len(content)])


class Tensor(Protocol):
    """An input as a signature, or a server's metadata, describes it; with its axis of items, where it has one."""

    @property
    def name(self) -> str: ...

    @property
    def datatype(self) -> str: ...

    @property
    def dims(self) -> Sequence[int]: ...


def file_input(inputs: Sequence[Tensor], hint: str) -> FileInput:
    """How the model takes a file. Raises ManifestError with `hint` when it has several inputs, or one that no file fits into as it is."""
    if len(inputs) != 1:
        names = ", ".join(tensor.name for tensor in inputs)
        raise ManifestError(f"a file is one input, and the model has {len(inputs)}: {names}", hint=hint)
    (tensor,) = inputs
    if tensor.datatype == "BYTES":
        fits = bool(tensor.dims) and all(size in {-1, 1} for size in tensor.dims)
    else:
        fits = tensor.datatype in VECTOR_TYPES and list(tensor.dims[-1:]) == [-1] and all(size in {-1, 1} for size in tensor.dims[:-1])
    if not fits:
        raise ManifestError(f"a file is no tensor {tensor.name!r} of type {tensor.datatype} and shape {list(tensor.dims)}", hint=hint)
    return FileInput(tensor.name, tensor.datatype, tuple(tensor.dims))


def values_of_items(outputs: Mapping[str, np.ndarray[Any, Any]], count: int, *, joined: bool = False) -> list[dict[str, Any]]:
    """The outputs of each of `count` items as JSON; ValueError when an output does not hold one part per item.

    An output for one item may lack the axis of items, unless items are `joined`, which is what that axis is for.
    """
    items: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, tensor in outputs.items():
        if count == 1 and not joined and tensor.shape[:1] != (1,):
            items[0][name] = plain(tensor)
            continue
        if tensor.shape[:1] != (count,):
            raise ValueError(f"output {name!r} has shape {list(tensor.shape)} for {count} items")
        for item, part in zip(items, tensor, strict=True):
            item[name] = plain(part)
    return items


def plain(value: Any) -> Any:
    """A tensor, or an element of one, as JSON: one element stands alone, bytes are text or {"b64": ...}, what is no number is null."""
    if isinstance(value, np.ndarray):
        return plain(value.reshape(-1)[0]) if value.size == 1 else [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
