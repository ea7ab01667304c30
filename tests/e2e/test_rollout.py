"""Servers come and go under traffic."""

import os
import time
from collections.abc import Iterator

import httpx
import pytest

from components import labels
from loadtests.engine import Load
from serving.contract import HTTP_PORT, LIVE_PATH, READY_PATH
from tests.e2e.kube import Kube, Manifest
from tests.e2e.node_processes import kill_container
from tests.e2e.platform import MODEL, NAMESPACE, Platform
from tests.e2e.server_copies import ServerCopy
from tests.e2e.traffic import assert_no_failures, counting_plan, over_grpc, over_http
from tests.e2e.waits import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RPS = 50.0
STABLE = {**labels.model_selector(MODEL), labels.VERSION: "v1"}
REPLICAS = 2
# Pre-stop delay, drain and the start of a successor.
SETTLE_SECONDS = 20
RESTART_SECONDS = 120
# A killed container is out of the gateway's sight after one failed connection (time-out 0.25 s) and the next attempt.
OUTAGE_SECONDS_MAX = 1.0
BROKEN = ServerCopy(name="broken-model", config=f'name: "{MODEL}"\nbackend: "no-such-backend"\n')


@pytest.fixture(scope="module")
def two_replicas(platform: Platform) -> Iterator[None]:
    """All traffic on version 1 in two pods, so that the loss of one is felt."""
    with platform.restored():
        edit = platform.edit({f"models.{MODEL}.server.replicas": str(REPLICAS), f"models.{MODEL}.canary.weight": "0"})
        assert edit.result.ok, edit.result.log
        wait_until_served_by(platform.kube, REPLICAS)
        yield


def wait_until_served_by(kube: Kube, count: int) -> list[Manifest]:
    return wait_for(
        f"{count} pods of version 1 are ready", lambda: kube.ready_pods(NAMESPACE, STABLE), lambda pods: len(pods) == count, seconds=RESTART_SECONDS
    )


def steady(platform: Platform, seconds: float) -> Load:
    return Load(counting_plan(RPS, seconds), [over_http(platform), over_grpc(platform)])


@pytest.mark.usefixtures("two_replicas")
def test_no_request_fails_while_the_servers_are_replaced(platform: Platform) -> None:
    """triton-inference-server/server#6939, #6230: a stopping server answers what still arrives and what is under way."""
    before = {pod["metadata"]["uid"] for pod in wait_until_served_by(platform.kube, REPLICAS)}
    with steady(platform, 400) as load:
        time.sleep(3)
        edit = platform.edit({f"models.{MODEL}.server.logVerbose": "1"})
        assert edit.result.ok, edit.result.log
        pods = wait_until_served_by(platform.kube, REPLICAS)
        time.sleep(SETTLE_SECONDS)
    assert not before & {pod["metadata"]["uid"] for pod in pods}
    assert_no_failures(load.report().raise_if_invalid())


@pytest.mark.usefixtures("two_replicas")
def test_no_request_fails_when_a_pod_is_deleted(platform: Platform) -> None:
    victim, _ = wait_until_served_by(platform.kube, REPLICAS)
    with steady(platform, 200) as load:
        time.sleep(3)
        platform.kube.delete("pods", victim["metadata"]["name"], NAMESPACE, seconds=90)
        wait_until_served_by(platform.kube, REPLICAS)
        time.sleep(3)
    assert_no_failures(load.report().raise_if_invalid())


@pytest.mark.usefixtures("two_replicas")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may kill a container's processes")
def test_a_killed_server_fails_only_what_was_in_flight_on_it(platform: Platform) -> None:
    victim, _ = wait_until_served_by(platform.kube, REPLICAS)
    with steady(platform, 200) as load:
        time.sleep(3)
        killed = load.mark("killed")
        assert kill_container(victim, "triton") > 0
        wait_for(
            "the killed container restarts",
            lambda: platform.kube.get("pods", victim["metadata"]["name"], NAMESPACE),
            lambda pod: pod is not None and pod["status"]["containerStatuses"][0]["restartCount"] > 0,
            seconds=RESTART_SECONDS,
        )
        wait_until_served_by(platform.kube, REPLICAS)
        time.sleep(2)
    report = load.report().raise_if_invalid()
    late = [sample for sample in report.failures if sample.sent > killed + OUTAGE_SECONDS_MAX or sample.done < killed]
    assert not late, str(report)


def test_a_version_that_does_not_come_up_fails_the_update_and_the_old_pods_serve_on(platform: Platform) -> None:
    """pulumi/pulumi-kubernetes#605, triton-inference-server/server#5940: a failed rollout, not an outage."""
    before = {pod["metadata"]["uid"] for pod in platform.kube.ready_pods(NAMESPACE, STABLE)}
    server = f"models.{MODEL}.server"
    with platform.restored(), steady(platform, 500) as load:
        # Short times, so that the rollout is given up after a minute.
        values = {f"{server}.modelLoadTimeoutSeconds": "10", f"{server}.nodeProvisioningSeconds": "0", f"{server}.maxRequestSeconds": "5"}
        edit = platform.edit({**values, "images.triton": "localhost/inference-platform/none:1"})
        assert not edit.result.ok
        assert "magika-v1" in edit.result.log
        assert before <= {pod["metadata"]["uid"] for pod in platform.kube.ready_pods(NAMESPACE, STABLE)}
    assert_no_failures(load.report().raise_if_invalid())


def test_a_broken_model_leaves_its_server_alive_and_unready_without_a_crash_loop(platform: Platform) -> None:
    """The pod template of the model server, with a model that cannot be loaded laid into it."""
    with platform.kube.created(BROKEN.manifests(platform)):
        started = wait_for(
            "the server with the broken model has started",
            lambda: platform.kube.find("pods", NAMESPACE, BROKEN.selector),
            lambda pods: bool(pods) and any(status.get("started") for status in pods[0]["status"].get("containerStatuses", [])),
            seconds=RESTART_SECONDS,
        )[0]
        # Three times what its liveness probe tolerates.
        time.sleep(3 * 30)
        pod = platform.kube.get("pods", started["metadata"]["name"], NAMESPACE)
        assert pod is not None
        (container,) = pod["status"]["containerStatuses"]
        assert container["restartCount"] == 0
        assert container["ready"] is False
        assert platform.kube.pod_call("GET", pod, HTTP_PORT, LIVE_PATH.lstrip("/")) == ""
        with pytest.raises(httpx.HTTPStatusError):
            platform.kube.pod_call("GET", pod, HTTP_PORT, READY_PATH.lstrip("/"))
