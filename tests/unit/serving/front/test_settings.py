"""What a front is told, and what it says when that cannot be."""

import json
import socket
import subprocess
import sys

import pytest

from components.errors import ConfigError
from serving.front.settings import load_settings
from tests.unit.serving.front.house import settings


def document(**changes):
    return {**settings().model_dump(mode="json", by_alias=True), **changes}


def test_the_document_that_a_stack_writes_is_read_back_equal(tmp_path):
    file = tmp_path / "front.json"
    file.write_text(json.dumps(document()))
    assert load_settings(file) == settings()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"port": "80"}, "port: Input should be a valid integer"),
        ({"prot": 80}, "prot: Extra inputs are not permitted"),
        (
            {"bodyMemoryMib": 3, "limits": {"maxRequestMib": 2}},
            "bodyMemoryMib 3 cannot hold an item of a batch beside a request, of maxRequestMib 2 each",
        ),
        ({"model": {**document()["model"], "address": "nowhere"}}, "model.address"),
    ],
)
def test_a_document_with_a_fault_names_file_key_and_reason(tmp_path, changes, reason):
    file = tmp_path / "front.json"
    file.write_text(json.dumps(document(**changes)))
    with pytest.raises(ConfigError, match=r"front\.json") as refused:
        load_settings(file)
    assert reason in str(refused.value)


def test_a_document_that_is_not_there_ends_the_process_with_a_sentence(tmp_path):
    command = [sys.executable, "-m", "serving.front", str(tmp_path / "none.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "none.json: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("key", ["port", "metrics_port"])
def test_a_port_that_is_taken_ends_the_process_with_a_sentence(tmp_path, key):
    with socket.create_server(("", 0)) as taken:
        ports = {"port": 0, "metrics_port": 0, key: taken.getsockname()[1]}
        (tmp_path / "front.json").write_text(settings().model_copy(update=ports).model_dump_json(by_alias=True))
        command = [sys.executable, "-m", "serving.front", str(tmp_path / "front.json")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "cannot listen at ports" in done.stderr
    assert "Traceback" not in done.stderr
