"""The harness itself: the image's own server answers, runs as it does in a pod, and leaves nothing behind."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from components.inference.pod_manifest import STACK_KIB
from serving.compatibility import CPU_IMAGE_TRITON
from serving.contract import USER_ID
from tools.errors import ToolError
from tools.paths import REPO
from tools.triton_process import TritonError, TritonProcess

pytestmark = pytest.mark.serving

START_AND_WAIT = """
import sys, time
from pathlib import Path
from tools.triton_process import TritonProcess
triton = TritonProcess(log=Path(sys.argv[1]))
triton.start()
triton.wait_ready()
print(triton.pid, flush=True)
time.sleep(60)
"""


def test_magika_answers(image_server: TritonProcess) -> None:
    tensor = {"name": "content", "datatype": "BYTES", "shape": [1, 1], "data": ["#!/usr/bin/env python3\nimport sys\nsys.exit(0)\n"]}
    answer = httpx.post(f"{image_server.http}/v2/models/magika/infer", json={"inputs": [tensor]}).json()
    assert {output["name"]: output["data"] for output in answer["outputs"]}["label"] == ["python"]


def test_the_server_is_the_release_that_models_are_compared_with(image_server: TritonProcess) -> None:
    assert httpx.get(f"{image_server.http}/v2").json()["version"] == CPU_IMAGE_TRITON


def test_the_server_runs_as_in_a_pod(image_server: TritonProcess) -> None:
    """As the image's user, as process 1, with the pod's stack, on a file system it cannot write to."""
    process = Path(f"/proc/{image_server.pid}")
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
    assert status["Uid"].split()[0] == str(USER_ID)
    assert status["NSpid"].split()[-1] == "1"
    [stack] = [line.split() for line in (process / "limits").read_text().splitlines() if line.startswith("Max stack size")]
    assert stack[3] == str(STACK_KIB * 1024)
    mounts = {line.split()[4]: line.split()[5].split(",")[0] for line in (process / "mountinfo").read_text().splitlines()}
    assert mounts["/"] == "ro"


def test_a_server_whose_caller_is_killed_ends_with_it(tmp_path: Path) -> None:
    caller = subprocess.Popen([sys.executable, "-c", START_AND_WAIT, str(tmp_path / "triton.log")], cwd=REPO, stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    server = os.pidfd_open(int(caller.stdout.readline()))
    caller.kill()
    caller.communicate()
    # A descriptor of a process becomes readable when it ends.
    ended, _, _ = select.select([server], [], [], 10)
    os.close(server)
    assert ended == [server]


def test_a_stopped_server_ends_well_and_keeps_its_log(tmp_path: Path) -> None:
    triton = TritonProcess(log=tmp_path / "triton.log")
    triton.start()
    triton.wait_ready()
    assert triton.stop() == 0
    assert "Waiting for in-flight requests to complete" in triton.log.read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(triton.pid, signal.SIGTERM)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        TritonProcess(arguments=["--load-model=magika"], log=tmp_path / "triton.log") as triton,
        pytest.raises(TritonError, match="model-control-mode"),
    ):
        triton.wait_ready()


def test_a_repository_that_the_servers_user_cannot_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir(mode=0o700)
    with pytest.raises(ToolError, match="not readable by others"):
        TritonProcess(repository=tmp_path / "models")
