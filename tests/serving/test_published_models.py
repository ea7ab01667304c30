"""Triton's own example models, through our reader, repository builder and renderer, answer right on the real server."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tritonclient.grpc import InferenceServerClient, InferInput
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from serving.model_config import ModelManifest, model_manifest, read_config, render_config
from serving.model_files import SourceFileSpec
from serving.model_manifest import ModelVersionSpec
from serving.repository.build import build_repository
from tools.paths import REPO
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

EXAMPLES = REPO / "tests" / "data" / "triton-model-repository"
LAST_STEP = 2
IDLE_MICROSECONDS = 120_000_000
MODELS = sorted(path.parent.parent.name for path in EXAMPLES.glob("*/1/model.*"))


def published(name: str) -> tuple[ModelManifest, str]:
    """The example as a model of ours, and the config.pbtxt that a stack with the same wishes renders for it."""
    read = read_config((EXAMPLES / name / "config.pbtxt").read_text())
    assert read.unexpressed == ()
    [path] = (EXAMPLES / name / "1").iterdir()
    content = path.read_bytes()
    values = {
        "name": path.name,
        "source": {"kind": "file", "path": f"1/{path.name}"},
        "sha256": hashlib.sha256(content).hexdigest(),
        "sizeBytes": len(content),
    }
    file = SourceFileSpec.model_validate_json(json.dumps(values))
    version = ModelVersionSpec(version=1, description="As published.", files=(file,), memory_mib=32)
    facts = read.facts
    manifest = model_manifest("magika").model_copy(
        update={"name": name, "format": read.format, "signature": facts.signature, "parameters": dict(facts.parameters), "versions": (version,)}
    )
    serving = read.serving
    if serving.sequence is not None:
        # A second, Triton's default, is soon over on a busy machine.
        serving = serving.model_copy(update={"sequence": serving.sequence.model_copy(update={"max_idle_microseconds": IDLE_MICROSECONDS})})
    return manifest, render_config(manifest, 1, serving, "cpu")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InferenceServerClient]:
    """A server of all the examples that have a network or code."""
    folder = tmp_path_factory.mktemp("published")
    repository = folder / "models"
    models = dict(zip(MODELS, map(published, MODELS), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        for module in ("artefact", "repository.sources"):
            patch.setattr(f"serving.{module}.MODELS_DIR", EXAMPLES)
        build_repository([manifest for manifest, _ in models.values()], lambda wheel: Path(wheel.distribution), repository)
    for name, (_, config) in models.items():
        (repository / name / "config.pbtxt").write_text(config)
    with TritonProcess(repository=repository, arguments=["--exit-on-error=true"], log=folder / "triton.log") as triton:
        triton.wait_ready()
        with InferenceServerClient(triton.grpc) as client:
            yield client


def ask(client: InferenceServerClient, model: str, inputs: dict[str, np.ndarray], **sequence: int | bool) -> dict[str, np.ndarray]:
    """Every output by name."""
    tensors = []
    for name, values in inputs.items():
        tensor = InferInput(name, list(values.shape), np_to_triton_dtype(values.dtype))
        tensor.set_data_from_numpy(values)
        tensors.append(tensor)
    result = client.infer(model, tensors, **sequence)
    return {output.name: result.as_numpy(output.name) for output in result.get_response().outputs}


@pytest.mark.parametrize(("model", "datatype"), [("simple", np.int32), ("simple_int8", np.int8)])
def test_sum_and_difference_of_integers(client: InferenceServerClient, model: str, datatype: type) -> None:
    one: np.ndarray = np.arange(32).reshape(2, 16).astype(datatype)
    two: np.ndarray = np.full((2, 16), 3).astype(datatype)
    answer = ask(client, model, {"INPUT0": one, "INPUT1": two})
    assert (answer["OUTPUT0"] == one + two).all()
    assert (answer["OUTPUT1"] == one - two).all()


def test_sum_and_difference_of_integers_written_as_text(client: InferenceServerClient) -> None:
    one: np.ndarray = np.array([[str(value) for value in range(16)]], dtype=np.object_)
    two: np.ndarray = np.array([["4"] * 16], dtype=np.object_)
    answer = ask(client, "simple_string", {"INPUT0": one, "INPUT1": two})
    assert [int(value) for value in answer["OUTPUT0"][0]] == [value + 4 for value in range(16)]
    assert [int(value) for value in answer["OUTPUT1"][0]] == [value - 4 for value in range(16)]


def test_a_python_model_gives_back_its_texts(client: InferenceServerClient) -> None:
    texts = np.array([[b"a", b"", "żółw".encode()]], dtype=np.object_)
    assert (ask(client, "simple_identity", {"INPUT0": texts})["OUTPUT0"] == texts).all()


@pytest.mark.parametrize(("model", "last"), [("simple_sequence", 0), ("simple_dyna_sequence", 1)])
def test_the_control_inputs_of_two_sequences_at_once_are_their_own(client: InferenceServerClient, model: str, last: int) -> None:
    """The networks add 1 to the request that starts a sequence, and the second also the sequence's id to the one that ends it."""
    for step, added in ((0, lambda _: 1), (1, lambda _: 0), (2, lambda sequence: last * sequence)):
        for sequence in (7, 9):
            values = np.array([[10 * sequence + step]], dtype=np.int32)
            answer = ask(client, model, {"INPUT": values}, sequence_id=sequence, sequence_start=step == 0, sequence_end=step == LAST_STEP)
            assert answer["OUTPUT"].tolist() == [[10 * sequence + step + added(sequence)]]


def test_a_request_of_a_sequence_that_was_never_begun_is_refused(client: InferenceServerClient) -> None:
    with pytest.raises(InferenceServerException, match="must specify the START flag"):
        ask(client, "simple_sequence", {"INPUT": np.array([[1]], dtype=np.int32)}, sequence_id=11)
