"""Small repositories, and a real S3 server (moto's)."""

import uuid
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from serving.repository.bucket import BucketStore
from serving.repository.checksums import CHECKSUMS, VersionRef, folder_checksums
from serving.repository.s3 import make_client
from serving.repository.volume import VolumeStore

FILES = {"model.onnx": b"weights" * 5000, "model.py": b"code", "saved/variables.index": b"index"}


def make_repository(root: Path, versions: dict[str, dict[str, bytes]]) -> VolumeStore:
    """A repository as a build leaves it."""
    for name, files in versions.items():
        ref = VersionRef.parse(name)
        folder = root / name
        folder.mkdir(parents=True)
        for file, content in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        (folder / CHECKSUMS).write_bytes(folder_checksums(ref, folder).render())
    return VolumeStore(root)


@pytest.fixture
def built(tmp_path):
    return make_repository(tmp_path / "built", {"magika/1": FILES, "magika/2": {**FILES, "model.onnx": b"other weights"}})


@pytest.fixture(scope="package")
def endpoint():
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture(scope="package")
def credentials(endpoint):
    return {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL_S3": endpoint}


@pytest.fixture(scope="package")
def shared_client(endpoint, credentials):
    """One for all tests: boto3 takes a fifth of a second to make one."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in credentials.items():
            patch.setenv(name, value)
        return make_client(endpoint)


@pytest.fixture
def client(shared_client, credentials, monkeypatch):
    """With the environment for whoever makes a client of its own."""
    for name, value in credentials.items():
        monkeypatch.setenv(name, value)
    return shared_client


@pytest.fixture
def bucket(client):
    name = f"bucket-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name)
    return BucketStore(client, name, "prod/triton")


@pytest.fixture(params=["volume", "bucket"])
def target(request, tmp_path):
    """A place to publish to, of each kind."""
    return request.getfixturevalue("bucket") if request.param == "bucket" else VolumeStore(tmp_path / "volume")


@pytest.fixture
def said():
    return []
