"""Files that are whole or as they were."""

import os
import stat

import pytest

from tools.files import write_atomically


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_a_file_has_its_mode_whatever_the_umask(tmp_path, mode):
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "deep" / "file", "text", mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "deep" / "file").stat().st_mode) == mode
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["file"]


def test_the_same_text_leaves_the_file_alone(tmp_path):
    write_atomically(tmp_path / "file", "text")
    before = (tmp_path / "file").stat()
    write_atomically(tmp_path / "file", "text")
    assert ((tmp_path / "file").stat().st_ino, (tmp_path / "file").stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_that_was_open_to_others_becomes_private(tmp_path):
    write_atomically(tmp_path / "file", "text", 0o644)
    write_atomically(tmp_path / "file", "text", 0o600)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"other"])
def test_damaged_content_is_replaced(tmp_path, damage):
    (tmp_path / "file").write_bytes(damage)
    write_atomically(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"


def test_a_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "target").write_text("mine")
    (tmp_path / "file").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "file", "text")
    assert (tmp_path / "target").read_text() == "mine"
    assert not (tmp_path / "file").is_symlink()
