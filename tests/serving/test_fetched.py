"""A repository that was built, published to an object store and fetched from there is served by the real Triton."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from moto.server import ThreadedMotoServer

from components.errors import run_main
from serving.artefact import files_sha256, version_files
from serving.contract import CONFIG_FILE, JSON_LENGTH_HEADER
from serving.model_check import sole_document
from serving.model_config import ServingSpec, part_serving, render_config, server_models
from serving.model_manifest import model_manifest
from serving.repository.__main__ import main as repository
from serving.repository.s3 import make_client
from tests.serving.repository import infer, outputs, tensor
from tools import models
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

BUCKET = "models"
PLACE = f"s3://{BUCKET}/prod"
SERVING = ServingSpec.model_validate({"batching": {"maxBatchSize": 4}})


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "key", "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}"}.items():
        monkeypatch.setenv(name, value)
    make_client().create_bucket(Bucket=BUCKET)
    yield
    server.stop()


def serve(folder: Path, model: str, version: int) -> TritonProcess:
    """Build, publish, fetch as the pod's init step does, and a server over what was fetched."""
    pod = folder / "pod"
    pod.mkdir()
    manifest = model_manifest(model)
    parts = server_models(manifest, version, model_manifest)
    names = sorted(part.name for part, _ in parts)
    expected = [f"{part.name}/{number}@sha256:{files_sha256(version_files(part, number))}" for part, number in parts]
    for command in (
        lambda: models.main(["--to", str(folder / "built"), *names]),
        lambda: repository(["publish", str(folder / "built"), "--to", PLACE]),
        lambda: repository(["fetch", PLACE, "--to", str(pod), "--limit-mib", "40", *expected]),
        lambda: repository(["verify", str(pod), *expected]),
    ):
        assert run_main(command) == 0
    for part, number in parts:
        (pod / part.name / CONFIG_FILE).write_text(render_config(part, number, part_serving(manifest, part, SERVING), "cpu"))
    loaded = [f"--load-model={name}" for name in names]
    return TritonProcess(repository=pod, arguments=["--model-control-mode=explicit", *loaded], log=folder / "log")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.usefixtures("store")
def test_what_was_built_published_and_fetched_is_served(tmp_path: Path, version: int) -> None:
    """Version 2 has a file that was transformed after its source was compared."""
    with serve(tmp_path, "magika", version) as triton:
        triton.wait_ready()
        answer = infer(triton, "magika", tensor("content", "BYTES", [1, 1], ["#!/usr/bin/env python3\nimport sys\nsys.exit(0)\n"]))
        assert outputs(answer)["label"] == ["python"]


@pytest.mark.usefixtures("store")
def test_an_ensemble_is_fetched_with_its_steps_and_served(tmp_path: Path) -> None:
    """It has no files of its own, and its folder is there all the same."""
    manifest = model_manifest("ocr")
    assert manifest.check is not None
    with serve(tmp_path, "ocr", 1) as triton:
        triton.wait_ready()
        # JSON cannot hold the bytes of a picture.
        headers = {"Content-Type": "application/octet-stream", JSON_LENGTH_HEADER: "0"}
        answer = httpx.post(f"{triton.http}/v2/models/ocr/infer", content=sole_document(manifest.check_inputs), headers=headers, timeout=30)
        assert answer.status_code == httpx.codes.OK, answer.text
        assert answer.content.endswith(str(manifest.check.expected).encode())
