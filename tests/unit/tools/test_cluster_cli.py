"""The command line: exit codes, and text instead of stack traces."""

import json
from pathlib import Path

import pytest

from tools.cluster.__main__ import main


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path))


def test_a_bad_name_is_a_sentence_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", "--name", "Not_a_label"]) == 1
    assert "cluster name 'Not_a_label' cannot be used" in capsys.readouterr().err


def test_a_user_who_is_not_root_is_told_before_anything_is_built(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main(["start"]) == 1
    assert "needs root" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_zones_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", "--nodes", "2", "--zones", "a,"]) == 1
    assert "2 nodes need 2 zones, got a" in capsys.readouterr().err


def test_status_of_no_cluster_is_absent_and_not_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["state"] == "absent"


def test_stop_and_delete_of_no_cluster_succeed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stop", "--name", "never-was"]) == 0
    assert main(["delete", "--name", "never-was"]) == 0
    assert capsys.readouterr().out.splitlines() == ["cluster never-was was not running", "cluster never-was deleted"]
