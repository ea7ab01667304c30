"""A model's HTTP front through the gateway: files in, JSON out, and the weights of the stack file."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from loadtests.engine import Load
from loadtests.front_target import FrontTarget
from loadtests.report import Report
from tests.e2e.apps import provide_apps_image
from tests.e2e.platform import MODEL, Edit, Platform
from tests.e2e.traffic import PROPAGATION_SECONDS, SHORT, assert_no_failures, assert_split, counting_plan, gateway
from tools.endpoint import SAMPLES, SIGNATURE
from tools.paths import REPO

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FRONT_REPLICAS = f"models.{MODEL}.front.replicas"
WEIGHTS = (20, 60)
ITEMS = 1_000


@pytest.fixture(scope="module")
def fronted(platform: Platform) -> Iterator[Platform]:
    """The platform with a front for the model, at the first of WEIGHTS."""
    provide_apps_image(platform)
    with platform.restored():
        edit = platform.edit({FRONT_REPLICAS: "1", f"models.{MODEL}.canary.weight": str(WEIGHTS[0])})
        assert edit.result.ok, edit.result.log
        time.sleep(PROPAGATION_SECONDS)
        yield platform


@pytest.fixture(scope="module")
def http(fronted: Platform) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{gateway(fronted)}", headers={"Host": fronted.authority}, trust_env=False, timeout=30) as client:
        yield client


@pytest.mark.parametrize(("file", "label"), SAMPLES.items())
def test_curl_sends_a_file_as_a_form_and_reads_what_it_is(fronted: Platform, file: str, label: str) -> None:
    command = ["curl", "-sS", "--fail-with-body", "-H", f"Host: {fronted.authority}", "-F", f"file=@{file}", f"http://{gateway(fronted)}/predict"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["outputs"]["label"] == label


def test_a_named_version_answers_every_time_whatever_the_weights(http: httpx.Client) -> None:
    for version in ("1", "2"):
        answers = [http.post("/predict", content=b"hello", headers={"x-model-version": version}) for _ in range(15)]
        assert {(answer.status_code, answer.json()["version"]) for answer in answers} == {(200, version)}
    assert http.post("/predict?version=9", content=b"hello").status_code == 404


def test_a_batch_is_answered_item_by_item_and_its_requests_obey_the_weights(http: httpx.Client) -> None:
    began = time.monotonic()
    answer = http.post(f"/v1/models/{MODEL}/batch", content=b'{"text": "hello"}\n' * ITEMS)
    *items, end = [json.loads(line) for line in answer.text.splitlines()]
    assert end["end"] == {"items": ITEMS, "failed": 0, "complete": True}
    assert [item["index"] for item in items] == list(range(ITEMS))
    assert set(Counter(item["version"] for item in items)) == {"1", "2"}
    print(f"{ITEMS / (time.monotonic() - began):.0f} items/s through the gateway, there and back twice")


def test_health_and_metrics_of_the_front_are_not_reached_from_outside(http: httpx.Client) -> None:
    for path in ("/health/ready", "/metrics", "/v1/models/other/predict"):
        assert http.get(path).status_code == 404
    assert http.get("/openapi.json").status_code == 200


@pytest.fixture(scope="module")
def edit_under_load(fronted: Platform) -> tuple[Report, Edit]:
    """One run of predictions through the front, with an edit of the weight in it."""
    target = FrontTarget(name="front", address=gateway(fronted), authority=fronted.authority, signature=SIGNATURE, documents=SHORT)
    with Load(counting_plan(60, 120), [target]) as load:
        load.mark("first")
        time.sleep(10)
        load.mark("edit")
        edit = fronted.set_weight(WEIGHTS[1])
        time.sleep(PROPAGATION_SECONDS)
        load.mark("second")
        time.sleep(10)
    return load.report().raise_if_invalid(), edit


def test_the_weights_hold_for_the_front_and_an_edit_changes_nothing_of_it(edit_under_load: tuple[Report, Edit]) -> None:
    report, edit = edit_under_load
    assert_no_failures(report)
    assert edit.changed_kinds() == [("update", "VirtualService")], edit.result.changes
    for phase, weight in zip(("first", "second"), WEIGHTS, strict=True):
        assert report.phase(phase).count >= 500
        assert_split(report.phase(phase), weight)


def test_a_second_up_changes_nothing(fronted: Platform) -> None:
    result = fronted.stack.up()
    assert result.ok, result.log
    assert result.changes == ()
