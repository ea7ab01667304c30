"""A model's process that stood still: no caller ever gets the answer to another's request."""

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Self

import httpx
import pytest

from loadtests.payloads import Document, http_raw
from serving.model_check import sole_document
from serving.model_config import ServingSpec, model_manifest
from tests.serving.repository import deploy, infer, outputs, tensor, write_model
from tools.endpoint import SIGNATURE
from tools.triton_process import TritonProcess

pytestmark = pytest.mark.serving

SERVING = ServingSpec.model_validate({"batching": {"maxBatchSize": 16}, "instances": {"count": 2}})
DOCUMENTS = {"python": sole_document(model_manifest("magika").check_inputs), "png": sole_document(model_manifest("ocr").check_inputs)}
CALLERS = 6
# The server gives a request up after one second.
STOPPED_SECONDS = 3
AFTER_SECONDS = 2
BUSY = """
import ctypes
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        ctypes.PyDLL(None).sleep(3)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())]) for request in requests]
"""
BUSY_CONFIG = """
name: "busy"
backend: "python"
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
instance_group { kind: KIND_CPU }
"""
STUB = "triton_python_backend_stub"


def stubs(process: int) -> list[int]:
    """Processes of models, which the server starts by way of a shell."""
    found = []
    for child in map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()):
        program = Path(f"/proc/{child}/cmdline").read_text().split("\0")[0]
        found += [child] if program.endswith(STUB) else stubs(child)
    return found


class Callers:
    """Ask about two documents in turn until told to stop, and count what comes."""

    def __init__(self, server: TritonProcess) -> None:
        self._server = server
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(list(DOCUMENTS)[number % 2],)) for number in range(CALLERS)]
        self.answers: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, expected: str) -> None:
        request = http_raw(SIGNATURE, Document(DOCUMENTS[expected]))
        with httpx.Client(base_url=self._server.http, timeout=20) as client:
            while not self._done.wait(0.01):
                try:
                    answer = client.post(request.path, content=request.body, headers=request.headers)
                except httpx.HTTPError:
                    # The server ends.
                    continue
                if answer.status_code == httpx.codes.OK:
                    self.answers[expected, next(label for label in DOCUMENTS if answer.content.endswith(label.encode()))] += 1


def test_a_model_that_stood_still_ends_its_server_instead_of_answering_late(tmp_path: Path) -> None:
    """Triton gives its request up, and would take the answer for that of the next request, whoever asks; and so on from then."""
    with deploy(tmp_path, "magika", 1, SERVING, arguments=["--exit-timeout-secs=5"]) as server:
        server.wait_ready()
        stub = stubs(server.pid)[0]
        with Callers(server) as callers:
            os.kill(stub, signal.SIGSTOP)
            time.sleep(STOPPED_SECONDS)
            os.kill(stub, signal.SIGCONT)
            time.sleep(AFTER_SECONDS)
        server.wait_ended(40)
        assert "stub-guard: this model stood still" in server.log.read_text()
    assert set(callers.answers) == {(label, label) for label in DOCUMENTS}, callers.answers


def test_a_model_that_is_busy_for_long_is_left_alone(tmp_path: Path) -> None:
    """Also where it keeps the interpreter to itself meanwhile, so that nothing else of it in Python runs."""
    repository = tmp_path / "models"
    write_model(repository, "busy", BUSY_CONFIG, {"model.py": BUSY})
    for folder in (tmp_path, tmp_path.parent):
        folder.chmod(0o755)
    with TritonProcess(repository=repository, log=tmp_path / "triton.log") as server:
        server.wait_ready()
        for _ in range(2):
            assert outputs(infer(server, "busy", tensor("x", "FP32", [1], [2.5]))) == {"y": [2.5]}
        assert "stub-guard" not in server.log.read_text()
