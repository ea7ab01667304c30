"""A repository that was built, published to an object store and fetched from there is served by the real Triton."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from components.errors import run_main
from serving.contract import CONFIG_FILE
from serving.model_config import ServingSpec, render_config
from serving.model_manifest import model_manifest
from serving.repository.__main__ import main as repository
from serving.repository.s3 import make_client
from tests.serving.repository import infer, outputs, tensor
from tools import models
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

BUCKET = "models"
PLACE = f"s3://{BUCKET}/prod"


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


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.usefixtures("store")
def test_what_was_built_published_and_fetched_is_served(tmp_path: Path, version: int) -> None:
    """Version 2 has a file that was transformed after its source was compared."""
    pod = tmp_path / "pod"
    pod.mkdir()
    for command in (
        lambda: models.main(["--to", str(tmp_path / "built"), "magika"]),
        lambda: repository(["publish", str(tmp_path / "built"), "--to", PLACE]),
        lambda: repository(["fetch", PLACE, "--to", str(pod), "--limit-mib", "20", f"magika/{version}"]),
    ):
        assert run_main(command) == 0
    manifest = model_manifest("magika")
    (pod / "magika" / CONFIG_FILE).write_text(render_config(manifest, version, ServingSpec(), "cpu"))
    with TritonProcess(repository=pod, arguments=["--model-control-mode=explicit", "--load-model=magika"], log=tmp_path / "log") as triton:
        triton.wait_ready()
        answer = infer(triton, "magika", tensor("content", "BYTES", [1, 1], ["#!/usr/bin/env python3\nimport sys\nsys.exit(0)\n"]))
        assert outputs(answer)["label"] == ["python"]
