"""A model that takes its time to load."""

import time
from datetime import datetime

import pytest

from loadtests.payloads import Document, http_json, read_http
from serving.contract import HTTP_PORT
from serving.model_manifest import MODELS_DIR
from tests.e2e.kube import is_ready
from tests.e2e.platform import MODEL, NAMESPACE, Platform
from tests.e2e.server_copies import ServerCopy
from tests.e2e.waits import wait_for
from tools.endpoint import SIGNATURE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

# A tenth of five minutes.
LOAD_SECONDS = 30
# Pod and interpreter on a busy machine, and the first probe after the load.
MARGIN_SECONDS = 60
# Of its liveness probe, after the start: three failures in a row, ten seconds apart, would be a restart.
WATCHED_SECONDS = 12
SLOW_MODEL = f"""
import time

_initialize = TritonPythonModel.initialize


def _slowly(self, args):
    time.sleep({LOAD_SECONDS})
    _initialize(self, args)


TritonPythonModel.initialize = _slowly
"""
SLOW = ServerCopy(name="slow-model", files={"1/model.py": (MODELS_DIR / MODEL / "model.py").read_text(encoding="utf-8") + SLOW_MODEL})


def test_a_server_is_left_alone_while_its_model_loads(platform: Platform) -> None:
    """triton-inference-server/server#7014, #5940, at a tenth of the time, with the probes of the live server."""
    kube = platform.kube
    with kube.created(SLOW.manifests(platform)):
        [pod] = wait_for(
            "the slow model is served",
            lambda: kube.find("pods", NAMESPACE, SLOW.selector),
            lambda pods: bool(pods) and all(map(is_ready, pods)),
            seconds=LOAD_SECONDS + MARGIN_SECONDS,
        )
        [status] = pod["status"]["containerStatuses"]
        [ready] = [condition for condition in pod["status"]["conditions"] if condition["type"] == "Ready"]
        took = datetime.fromisoformat(ready["lastTransitionTime"]) - datetime.fromisoformat(status["state"]["running"]["startedAt"])
        assert took.total_seconds() >= LOAD_SECONDS
        time.sleep(WATCHED_SECONDS)
        [pod] = kube.find("pods", NAMESPACE, SLOW.selector)
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
        assert is_ready(pod)
        request = http_json(SIGNATURE, Document(b"hello"))
        answer = kube.pod_call("POST", pod, HTTP_PORT, request.path.lstrip("/"), request.body.decode())
        assert read_http(SIGNATURE, None, answer.encode()).label == "txt"
