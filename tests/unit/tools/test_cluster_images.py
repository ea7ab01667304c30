"""Names of images in archives; conditions of Kubernetes objects."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools.cluster.images import archive_refs
from tools.cluster.kubectl import node_ready_since, pod_ready_since, rolled_out
from tools.errors import ToolError

REF = "localhost/inference-platform/pause:0123456789ab"


def archive(file: Path, members: dict[str, object]) -> Path:
    with tarfile.open(file, "w") as tar:
        for name, value in members.items():
            data = json.dumps(value).encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file


@pytest.mark.parametrize(
    "members",
    [
        {"manifest.json": [{"Config": "c.json", "RepoTags": [REF]}]},
        {"index.json": {"manifests": [{"annotations": {"org.opencontainers.image.ref.name": REF}}]}},
        {"index.json": {"manifests": [{"annotations": {"io.containerd.image.name": REF, "org.opencontainers.image.ref.name": "tag"}}]}},
        {"index.json": {"manifests": [{"annotations": {"org.opencontainers.image.ref.name": "tag"}}]}, "manifest.json": [{"RepoTags": [REF]}]},
    ],
)
def test_an_archive_of_either_format_tells_its_name(tmp_path: Path, members: dict[str, object]) -> None:
    assert archive_refs(archive(tmp_path / "a.tar", members)) == {REF}


@pytest.mark.parametrize(
    "members",
    [{}, {"manifest.json": [{"RepoTags": None}]}, {"index.json": {"manifests": [{"annotations": {"org.opencontainers.image.ref.name": "latest"}}]}}],
)
def test_an_archive_without_a_full_name_is_refused(tmp_path: Path, members: dict[str, object]) -> None:
    with pytest.raises(ToolError, match="has no name"):
        archive_refs(archive(tmp_path / "a.tar", members))


@pytest.mark.parametrize("content", [b"", b"not a tar", b"\0" * 10])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(ToolError, match="is no image archive"):
        archive_refs(tmp_path / "a.tar")


def test_a_missing_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="is no image archive"):
        archive_refs(tmp_path / "a.tar")


def node(status: str, beat: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Ready", "status": status, "lastHeartbeatTime": beat}]}}


def pod(started: str | None) -> dict[str, Any]:
    state = {"running": {"startedAt": started}} if started else {"waiting": {}}
    return {"status": {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"state": state}]}}


def test_a_node_is_ready_only_when_it_said_so_after_the_start() -> None:
    assert node_ready_since(node("True", "1970-01-01T00:01:40Z"), 100.9)
    assert not node_ready_since(node("True", "1970-01-01T00:01:39Z"), 100.9)
    assert not node_ready_since(node("False", "1970-01-01T00:01:40Z"), 100.9)
    assert not node_ready_since(None, 0)


def test_a_pod_is_ready_only_when_its_containers_are_of_this_start() -> None:
    assert pod_ready_since(pod("1970-01-01T00:01:40Z"), 100)
    assert not pod_ready_since(pod("1970-01-01T00:01:39Z"), 100)
    assert not pod_ready_since(pod(None), 100)


def test_a_deployment_is_rolled_out_when_no_replica_of_an_older_template_is_left() -> None:
    done = {
        "metadata": {"generation": 2},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    }
    assert rolled_out(done)
    assert not rolled_out(None)
    assert not rolled_out({**done, "metadata": {"generation": 3}})
    assert not rolled_out({**done, "status": {**done["status"], "replicas": 2}})
