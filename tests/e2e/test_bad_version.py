"""Versions out of an object store, and what becomes of a bad one: a failed rollout with a reason, never an outage."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import labels
from loadtests.engine import Load
from tests.e2e.in_cluster import CREDENTIALS, apps_image
from tests.e2e.kube import Manifest
from tests.e2e.model_store import BAD, FIXED, GOOD, IN_VOLUME, ModelStore, model_store
from tests.e2e.platform import MODEL, NAMESPACE, PREFIX, Edit, Platform
from tests.e2e.traffic import SHORT, assert_no_failures, counting_plan, over_http
from tests.e2e.waits import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RPS = 20.0
INIT = "repository"
# The files of a version: network, its two tables, two modules.
FILES = 5
# Short times, so that a rollout is given up after a minute; and a warm-up, by which a server proves that it answers before it gets traffic.
SERVED: dict[str, Any] = {
    "version": 1,
    "tritonName": MODEL,
    "batching": {"maxBatchSize": 16},
    "warmup": [{"count": 1}],
    "server": {"cpuRequest": 0.1, "memoryMib": 832, "modelLoadTimeoutSeconds": 5, "nodeProvisioningSeconds": 0, "maxRequestSeconds": 2},
    "slo": {"p99Ms": 200, "errorRatio": 0.01},
}
# Checksums that fit such files are of no use to them: the pod is told what the version must be.
ANOTHER = r"magika/1 is not the version that the stack was made for: expected artefact [0-9a-f]{64}, found [0-9a-f]{64} \(.*\bmodel\.onnx "
REASONS = {
    "corrupt": r"corrupt/magika/1/model\.py is damaged: expected SHA-256 [0-9a-f]{64} \(\d+ bytes\), found [0-9a-f]{64}",
    "signature": ANOTHER,
    "refuses": ANOTHER,
    "memory": ANOTHER,
}


@pytest.fixture(scope="module")
def store(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelStore]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        with model_store(tmp_path_factory.mktemp("store")) as store, platform.kube.created(store.manifests()):
            yield store


@pytest.fixture(scope="module")
def serving(platform: Platform, store: ModelStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The four models that are going to get a bad version, good as yet, and a cache on the node."""
    cache = tmp_path_factory.mktemp("node")
    with platform.restored():
        edit = write(platform, store, dict.fromkeys(BAD, GOOD), cache)
        assert edit.result.ok, edit.result.log
        yield


def write(platform: Platform, store: ModelStore, prefixes: dict[str, str], cache: Path) -> Edit:
    """Models by name, each from a prefix of the store, in the stack file, and `pulumi up`."""
    file = platform.stack.config_file
    assert file is not None
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    config = document["config"]
    config[f"{PREFIX}images"] = {"apps": apps_image()}
    config[f"{PREFIX}cluster"]["modelCache"] = {"path": str(cache), "sizeGib": 1}
    config[f"{PREFIX}models"].update({name: {**SERVED, "repository": store.repository(name, prefix)} for name, prefix in prefixes.items()})
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return platform.edit({})


def pods(platform: Platform, name: str) -> list[Manifest]:
    return platform.kube.find("pods", NAMESPACE, labels.model_selector(name))


def serving_uids(platform: Platform) -> dict[str, set[str]]:
    return {name: {pod["metadata"]["uid"] for pod in platform.kube.ready_pods(NAMESPACE, labels.model_selector(name))} for name in BAD}


def reason(platform: Platform, pod: Manifest) -> str:
    """What a person reads about a pod that does not come up: the init step's status, else the server's log."""
    [init] = pod["status"]["initContainerStatuses"]
    states = [init.get(key, {}).get("terminated", {}) for key in ("state", "lastState")]
    said = " ".join(state.get("message", "") for state in states if state.get("exitCode"))
    return said or platform.kube.logs(pod["metadata"]["name"], NAMESPACE, "triton", lines=200)


@pytest.mark.usefixtures("serving")
def test_of_the_pods_of_a_node_one_downloads_a_file_and_the_others_take_it_from_the_nodes_cache(platform: Platform) -> None:
    """Three pods at once, all with the same version."""
    fetching = [pod for name in BAD if name != IN_VOLUME for pod in pods(platform, name)]
    logs = [platform.kube.logs(pod["metadata"]["name"], NAMESPACE, INIT, lines=200) for pod in fetching]
    assert len(logs) == len(BAD) - 1
    cached = [line for log in logs for line in log.splitlines() if "from the node's cache" in line]
    assert len(cached) == FILES * (len(logs) - 1), logs
    assert all("every checksum holds" in log.splitlines()[-1] for log in logs)
    assert not any("goes on without" in log for log in logs)


@pytest.mark.usefixtures("serving")
def test_a_bad_version_never_takes_a_serving_pod_down(platform: Platform, store: ModelStore, tmp_path: Path) -> None:
    """triton-inference-server/server#5940: corrupt in the store, or other content published under the number, whose signature is wrong,
    which refuses to load or eats all memory: all at once under traffic, and none of it gets as far as a server.

    Three come from the object store, one from a volume.
    """
    domain = platform.config()["gateway"]["domain"]
    targets = [replace(over_http(platform, documents=SHORT), name=name, authority=f"{name}.{domain}") for name in BAD]
    cache = Path(platform.config()["cluster"]["modelCache"]["path"])
    before = serving_uids(platform)
    with Load(counting_plan(RPS, 500), targets) as load:
        edit = write(platform, store, {name: name for name in BAD}, cache)
        assert not edit.result.ok
        for name in BAD:
            assert f"{name}-v1" in edit.result.log
            [broken] = [pod for pod in pods(platform, name) if pod["metadata"]["uid"] not in before[name]]
            assert re.search(REASONS[name], reason(platform, broken), re.DOTALL), reason(platform, broken)
        assert serving_uids(platform) == before
        load.mark("fixed")
        edit = write(platform, store, dict.fromkeys(BAD, FIXED), cache)
        assert edit.result.ok, edit.result.log
        wait_for(
            "the fixed version serves alone",
            lambda: serving_uids(platform),
            lambda uids: all(len(uids[name]) == 1 and not uids[name] & before[name] for name in BAD),
            seconds=60,
        )
    assert_no_failures(load.report().raise_if_invalid())
