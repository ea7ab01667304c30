"""What the pipeline must know of a model: its examples, and what surrounds its network. One module per model."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from serving.optimise.errors import OptimisationError
from serving.optimise.examples import ExampleSet

Feed = dict[str, np.ndarray]
Answerer = Callable[[Sequence[bytes]], list[str]]


class Session(Protocol):
    """What runs a network; onnxruntime's InferenceSession is one."""

    def run(self, output_names: Sequence[str] | None, input_feed: Any) -> Any: ...


class Adapter(Protocol):
    """A model's side of the pipeline."""

    network: str  # name of the network's file in a version directory
    fixed: Mapping[str, int]  # symbolic axes and their size for one example, for compilers that need every size

    def examples(self) -> ExampleSet: ...

    def answerer(self, session: Session) -> Answerer:
        """The served computation around `session`: contents in, an answer for each out."""

    def feeds(self, contents: Sequence[bytes]) -> Iterator[Feed]:
        """What reaches the network, one example at a time."""


# Module of each adapter; imported when asked for, because each brings what its examples need.
ADAPTERS: Mapping[str, str] = {"magika": "serving.optimise.magika"}


def adapter_of(model: str, directory: Path) -> Adapter:
    """The adapter of `model`, on its version in `directory`; OptimisationError when none is written."""
    if model not in ADAPTERS:
        raise OptimisationError(
            f"model {model!r} has no adapter: nothing says what it is tried on",
            hint=f"models with one: {', '.join(ADAPTERS)}; write another beside serving/optimise/magika.py and name it in adapters.py",
        )
    make: Callable[[Path], Adapter] = importlib.import_module(ADAPTERS[model]).adapter
    return make(directory)


def load_module(path: Path, name: str) -> ModuleType:
    """The code of a version directory, which is no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise OptimisationError(f"{path} is no Python module", hint="the version directory must hold the model's code")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
