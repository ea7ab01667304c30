"""A model small enough to know its arithmetic: a convolution, a matrix product, and four classes."""

import hashlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from serving.model_manifest import ModelManifest
from serving.optimise.examples import Example, ExampleSet
from serving.optimise.measure import Plan
from serving.optimise.recipes import int8_static
from serving.optimise.variants import REFERENCE, Variant
from serving.optimise.workshop import Job
from serving.repository.sources import Wheels

LENGTH, CLASSES = 8, 4
NETWORK, CALIBRATION = "model.onnx", "calibration.json"
REFERENCE_ONLY = (Variant(REFERENCE, "as it is"),)


def write_network(path: Path) -> Path:
    """Rows of LENGTH values in, CLASSES scores out: Conv, GlobalMaxPool, Flatten, MatMul, Add."""
    chance = np.random.default_rng(7)
    weights = {
        "kernel": chance.normal(size=(16, 1, 3)),
        "product": chance.normal(size=(16, CLASSES)),
        "bias": np.zeros(CLASSES),
    }
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["convolved"], name="conv"),
        helper.make_node("GlobalMaxPool", ["convolved"], ["pooled"], name="pool"),
        helper.make_node("Flatten", ["pooled"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "product"], ["scaled"], name="product"),
        helper.make_node("Add", ["scaled", "bias"], ["scores"], name="add"),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 1, LENGTH])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", CLASSES])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def rows(contents: Sequence[bytes]) -> np.ndarray:
    return np.stack([np.frombuffer(content, np.uint8).astype(np.float32)[np.newaxis] / 255 for content in contents])


def contents(count: int, seed: int = 1) -> list[bytes]:
    return [row.tobytes() for row in np.random.default_rng(seed).integers(0, 256, (count, LENGTH), np.uint8)]


class TinyAdapter:
    """Counts what it is asked, so that a test sees what was not done again."""

    network = NETWORK
    fixed: Mapping[str, int] = {"rows": 1}

    def __init__(self, count: int = 60) -> None:
        self.asked = 0
        self._count = count

    def examples(self) -> ExampleSet:
        sets = [
            [Example(f"{name}/{index}", name, content, frozenset("0123")) for index, content in enumerate(contents(self._count, seed))]
            for seed, name in enumerate(("calibration", "evaluation"))
        ]
        return ExampleSet("random bytes", *sets)

    def answerer(self, session):
        def answer(given: Sequence[bytes]) -> list[str]:
            self.asked += len(given)
            return [str(best) for best in session.run(None, {"x": rows(given)})[0].argmax(axis=1)]

        return answer

    def feeds(self, given: Sequence[bytes]) -> Iterator[dict[str, np.ndarray]]:
        return ({"x": rows([content])} for content in given)


def calibrated_by(method) -> Variant:
    return Variant(f"int8-static-{method.name.lower()}", "quantised", int8_static(method))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def published(folder: Path, files: Mapping[str, Path], derived_sha256: str, minimum_agreement: float = 0.5) -> tuple[ModelManifest, Wheels]:
    """A manifest with the network as version 1 and quantised, with the calibration in `files`, as version 2; and the wheel that holds both."""
    wheel = folder / "tiny.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, path in files.items():
            archive.write(path, name)
    listed = [
        {"name": name, "source": {"kind": "wheel", "member": name}, "sizeBytes": path.stat().st_size, "sha256": sha256(path)}
        for name, path in files.items()
    ]
    derived = [
        file | {"transformation": "quantise-static-int8", "derivedSha256": derived_sha256} if file["name"] == NETWORK else file for file in listed
    ]
    tensor = {"name": "content", "datatype": "BYTES", "dims": (-1, 1)}
    manifest = ModelManifest.model_validate(
        {
            "name": "tiny",
            "description": "for tests",
            "licence": "none",
            "format": "python",
            "wheel": {"distribution": "tiny", "version": "1"},
            "signature": {"inputs": (tensor,), "outputs": (tensor,)},
            "check": {"inputs": {"content": "x"}, "output": "content", "expected": "x"},
            "loadBudgetSeconds": 1,
            "versions": (
                {"version": 1, "description": "original", "files": listed, "memoryMib": 1},
                {
                    "version": 2,
                    "description": "derived",
                    "files": derived,
                    "memoryMib": 1,
                    "quality": {"reference": 1, "minimumAgreement": minimum_agreement},
                },
            ),
        }
    )
    return manifest, lambda _: wheel


def original(folder: Path, network: Path) -> tuple[ModelManifest, Wheels]:
    """A manifest with the network alone, so that nothing has to be derived."""
    manifest, wheels = published(folder, {NETWORK: network}, "0" * 64)
    return manifest.model_copy(update={"versions": manifest.versions[:1]}), wheels


def job(manifest: ModelManifest, wheels: Wheels, work: Path, adapter: TinyAdapter, variants: Sequence[Variant] = REFERENCE_ONLY) -> Job:
    return Job(
        manifest=manifest,
        wheels=wheels,
        work=work,
        machine={"processor": "test"},
        say=lambda _: None,
        plan=Plan(calls={1: 2, 4: 1}, rounds=2, slow_calls=1),
        variants=variants,
        make_adapter=lambda _name, _directory: adapter,
    )
