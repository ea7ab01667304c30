"""An image's layers become one tree."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from tools.images import rootfs
from tools.images.recipes import ImageArchive
from tools.images.rootfs import ensure_rootfs, unpack_archive


def packed(files: dict[str, str]) -> bytes:
    """A tar of text files; a name that ends in / is a directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name.rstrip("/"))
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            member.mode = 0o755
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))
    return buffer.getvalue()


def image(path: Path, *layers: dict[str, str]) -> Path:
    """A docker-archive of these layers, the lowest first."""
    names = [f"{number}.tar" for number in range(len(layers))]
    parts = {name: packed(layer) for name, layer in zip(names, layers, strict=True)}
    parts["c.json"] = json.dumps({"config": {"Env": ["PATH=/bin", "A=b=c"]}}).encode()
    parts["manifest.json"] = json.dumps([{"Config": "c.json", "Layers": names}]).encode()
    with tarfile.open(path, "w") as archive:
        for name, content in parts.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_a_later_layer_replaces_and_removes_what_is_below_it(tmp_path):
    archive = image(
        tmp_path / "image.tar",
        {"a/": "", "a/kept": "1", "a/changed": "1", "a/removed": "1", "b/": "", "b/old": "1"},
        {"a/changed": "2", "a/.wh.removed": "", "b/": "", "b/new": "2", "b/.wh..wh..opq": ""},
    )
    (tmp_path / "out").mkdir()
    unpack_archive(archive, tmp_path / "out")
    assert tree(tmp_path / "out" / "root") == {"a/kept": "1", "a/changed": "2", "b/new": "2"}


def test_a_removed_directory_goes_with_its_content(tmp_path):
    archive = image(tmp_path / "image.tar", {"a/": "", "a/x": "1"}, {".wh.a": ""})
    (tmp_path / "out").mkdir()
    unpack_archive(archive, tmp_path / "out")
    assert tree(tmp_path / "out" / "root") == {}


def test_a_layer_cannot_write_outside_its_tree(tmp_path):
    archive = image(tmp_path / "image.tar", {"../outside": "1"})
    (tmp_path / "out").mkdir()
    with pytest.raises(tarfile.OutsideDestinationError):
        unpack_archive(archive, tmp_path / "out")


def test_an_image_is_unpacked_once_and_brings_its_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(rootfs, "images_dir", lambda: tmp_path)
    archive = ImageArchive("localhost/x:1", image(tmp_path / "x-1.tar", {"file": "1"}))
    first = ensure_rootfs(archive)
    assert first.environment == {"PATH": "/bin", "A": "b=c"}
    archive.path.unlink()
    assert ensure_rootfs(archive) == first
    assert tree(first.path) == {"file": "1"}
