"""A second model, an ensemble, beside the first: added as the serving README says, asked as every model is."""

import re
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from loadtests.payloads import Document, http_raw
from serving.contract import HTTP_PORT, model_ready_path
from serving.model_manifest import model_manifest
from tests.e2e.platform import MODEL, NAMESPACE, Platform
from tools.endpoint import Endpoint, signature_of
from tools.paths import REPO
from tools.predict import demonstrate

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

OCR = "ocr"
SETTING = re.compile(rf"^    pulumi config set --path (models\.{OCR}\.\S+) (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def ocr(platform: Platform) -> Iterator[Endpoint]:
    settings = dict(SETTING.findall((REPO / "serving" / "README.md").read_text(encoding="utf-8")))
    with platform.restored():
        edit = platform.edit(settings)
        assert edit.result.ok, edit.result.log
        yield Endpoint(
            address=platform.node_address,
            port=platform.gateway_port,
            host=f"{OCR}.{platform.config()['gateway']['domain']}",
            signature=signature_of(model_manifest(OCR)),
        )


def test_a_picture_in_its_text_out_over_http_and_grpc(ocr: Endpoint) -> None:
    demonstrate(ocr)


def test_the_printed_command_reads_a_picture(ocr: Endpoint) -> None:
    for file, text in ocr.samples.items():
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", ocr.curl(file)], cwd=REPO, capture_output=True, text=True, check=True)
        assert done.stdout == f"{text}\n"


def test_what_is_no_picture_is_refused_with_the_reason(ocr: Endpoint) -> None:
    request = http_raw(ocr.signature, Document(b"no picture"))
    answer = httpx.post(f"http://{ocr.address}:{ocr.port}{request.path}", content=request.body, headers={"Host": ocr.host, **request.headers})
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert "neither PNG nor JPEG" in answer.json()["error"]


@pytest.mark.usefixtures("ocr")
def test_its_server_loads_the_ensemble_with_its_steps_and_no_other_model(platform: Platform) -> None:
    [pod] = platform.kube.ready_pods(NAMESPACE, {"app.kubernetes.io/name": f"{OCR}-v1"})
    for name in (OCR, "ocr_decode", "ocr_recognise", "ocr_text"):
        assert platform.kube.pod_call("GET", pod, HTTP_PORT, model_ready_path(name, 1).lstrip("/")) == ""
    with pytest.raises(httpx.HTTPStatusError):
        platform.kube.pod_call("GET", pod, HTTP_PORT, model_ready_path(MODEL, 1).lstrip("/"))
