"""Files of a model out of an object store and out of an OCI artefact, held to their hash like those of a wheel."""

import hashlib
import socket

import pytest
from pydantic import TypeAdapter, ValidationError

from components.errors import ManifestError, PlatformError
from serving.model_files import SourceFileSpec
from serving.model_manifest import ModelManifest, model_manifest
from serving.model_sources import FileSourceSpec
from serving.repository.errors import AbsentError, RepositoryError, TransientError
from serving.repository.sources import write_source
from tests.unit.serving.repository.registry import serving

BODY = b"network " * 100_000
NO_DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def registry():
    with serving() as registry:
        yield registry


@pytest.fixture
def written(tmp_path):
    """Writes a file from a source and gives back its bytes."""

    def write(source, body=BODY):
        file = SourceFileSpec(
            name="model.onnx",
            source=TypeAdapter(FileSourceSpec).validate_python(source),
            sha256=hashlib.sha256(body).hexdigest(),
            size_bytes=len(body),
        )
        write_source(model_manifest("magika"), file, lambda _: tmp_path, tmp_path / "file")
        return (tmp_path / "file").read_bytes()

    return write


def test_an_object_is_read_from_the_store_of_the_environment(bucket, written):
    bucket.client.put_object(Bucket=bucket.bucket, Key="raw/model.onnx", Body=BODY)
    assert written({"kind": "s3", "uri": f"s3://{bucket.bucket}/raw/model.onnx"}) == BODY


def test_an_object_with_other_content_is_refused_with_both_hashes(bucket, written):
    bucket.client.put_object(Bucket=bucket.bucket, Key="raw/model.onnx", Body=b"other")
    with pytest.raises(ManifestError, match=r"raw/model\.onnx has SHA-256 [0-9a-f]{64}, but model\.yaml says"):
        written({"kind": "s3", "uri": f"s3://{bucket.bucket}/raw/model.onnx"})


@pytest.mark.parametrize("place", ["no-such-bucket/x", "{bucket}/no/such/key"])
def test_an_object_that_is_not_there_is_named(bucket, written, place):
    uri = f"s3://{place.format(bucket=bucket.bucket)}"
    with pytest.raises(AbsentError, match=uri):
        written({"kind": "s3", "uri": uri})


def test_a_store_that_is_not_there_may_be_tried_again(bucket, written, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(TransientError, match="s3://bucket/x"):
            written({"kind": "s3", "uri": "s3://bucket/x"})


def test_without_credentials_the_way_to_give_them_is_named(bucket, written, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(RepositoryError, match="credentials") as caught:
        written({"kind": "s3", "uri": "s3://bucket/x"})
    assert "AWS_ACCESS_KEY_ID" in caught.value.hint


def test_a_layer_is_found_by_its_title_in_the_artefact_of_that_digest(registry, written):
    reference = registry.push("models/magika", {"README.md": b"about", "model.onnx": BODY})
    assert written({"kind": "oci", "reference": reference, "title": "model.onnx"}) == BODY


def test_a_registry_that_asks_for_a_token_gets_one_for_the_account_of_the_environment(registry, written, monkeypatch):
    registry.account = ("robot", "password")
    reference = registry.push("models/magika", {"model.onnx": BODY})
    monkeypatch.setenv("OCI_USERNAME", "robot")
    monkeypatch.setenv("OCI_PASSWORD", "password")
    assert written({"kind": "oci", "reference": reference, "title": "model.onnx"}) == BODY
    assert registry.requests[-1][1] == "Bearer t0ken"


def test_a_wrong_account_is_refused_with_the_way_to_give_another(registry, written, monkeypatch):
    registry.account = ("robot", "password")
    reference = registry.push("models/magika", {"model.onnx": BODY})
    monkeypatch.setenv("OCI_USERNAME", "robot")
    monkeypatch.setenv("OCI_PASSWORD", "guess")
    with pytest.raises(RepositoryError, match="the registry answers 401") as caught:
        written({"kind": "oci", "reference": reference, "title": "model.onnx"})
    assert "OCI_USERNAME" in caught.value.hint


@pytest.mark.parametrize(
    ("fault", "error"),
    [(404, AbsentError), (403, RepositoryError), (429, TransientError), (503, TransientError)],
)
def test_what_a_registry_answers_tells_what_may_be_tried_again(registry, written, fault, error):
    registry.fault = fault
    with pytest.raises(error, match=f"the registry answers {fault}"):
        written({"kind": "oci", "reference": f"{registry.address}/models/magika@{NO_DIGEST}", "title": "model.onnx"})


def test_a_manifest_that_is_not_what_its_digest_says_is_refused(registry, written):
    reference = registry.push("models/magika", {"model.onnx": BODY})
    registry.content[f"/v2/models/magika/manifests/{reference.partition('@')[2]}"] = b'{"layers": []}'
    with pytest.raises(RepositoryError, match="the registry's manifest has digest"):
        written({"kind": "oci", "reference": reference, "title": "model.onnx"})


def test_a_layer_that_is_not_what_model_yaml_says_is_refused(registry, written):
    reference = registry.push("models/magika", {"model.onnx": b"other"})
    with pytest.raises(ManifestError, match=r"\(model\.onnx\) has SHA-256"):
        written({"kind": "oci", "reference": reference, "title": "model.onnx"})


def test_a_title_that_is_not_there_lists_those_that_are(registry, written):
    reference = registry.push("models/magika", {"a.onnx": b"a", "b.onnx": b"b"})
    with pytest.raises(AbsentError, match=r"no layer titled 'model\.onnx'; titles there are: a\.onnx, b\.onnx"):
        written({"kind": "oci", "reference": reference, "title": "model.onnx"})


def test_a_registry_that_is_not_there_may_be_tried_again(written):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TransientError, match="Connection refused"):
            written({"kind": "oci", "reference": f"{address}/models/magika@{NO_DIGEST}", "title": "model.onnx"})


def test_a_local_file_that_is_not_there_is_named(written):
    with pytest.raises(PlatformError, match=r"magika/no-such-file cannot be read"):
        written({"kind": "file", "path": "no-such-file"})


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "oci", "reference": "registry.example.com/models/magika:latest", "title": "x"},
        {"kind": "s3", "uri": "https://example.com/x"},
        {"kind": "s3", "uri": "s3://bucket"},
        {"kind": "file", "path": "/etc/passwd"},
        {"kind": "http", "url": "http://example.com"},
        {"kind": "wheel"},
    ],
)
def test_a_source_that_is_not_pinned_or_cannot_be_is_refused(source):
    with pytest.raises(ValidationError):
        TypeAdapter(FileSourceSpec).validate_python(source)


def test_a_file_of_a_wheel_needs_the_wheel():
    content = model_manifest("magika").model_dump(mode="json", by_alias=True)
    del content["wheel"]
    with pytest.raises(ValidationError, match="taken from the model's wheel, and `wheel` names none"):
        ModelManifest.model_validate(content)
