"""A canary leaves, comes back and becomes the stable version, under traffic, and no request notices."""

import time
from dataclasses import dataclass

import pytest

from components import labels
from loadtests.engine import Load
from loadtests.report import Report
from tests.e2e.inventory import Inventory, inventory
from tests.e2e.kube import Kube
from tests.e2e.platform import MODEL, NAMESPACE, Edit, Platform
from tests.e2e.traffic import PROPAGATION_SECONDS, SHORT, assert_no_failures, counting_plan, over_grpc, over_http

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RPS = 120.0
# Enough to see where the requests go once an edit is in force.
PHASE_SECONDS = 3.0
CANARY = f"models.{MODEL}.canary"
Pods = dict[str, int]


@dataclass(frozen=True)
class Step:
    """An edit under traffic, and what was there once it was in force: objects of ours, and the canary's pods with their restarts."""

    edit: Edit
    objects: Inventory
    pods: Pods


@dataclass(frozen=True)
class Life:
    """Version 2 as canary, taken away, brought back, promoted; `report` covers the way back to the committed stack file too."""

    report: Report
    before: Inventory
    steps: dict[str, Step]


def pods_of(kube: Kube, version: str) -> Pods:
    """Restarts of each pod of a version, by uid."""
    found = kube.find("pods", NAMESPACE, {**labels.model_selector(MODEL), labels.VERSION: version})
    return {pod["metadata"]["uid"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in found}


@pytest.fixture(scope="module")
def life(platform: Platform) -> Life:
    edits: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
        "removed": ({}, (CANARY,)),
        "added": ({f"{CANARY}.version": "2", f"{CANARY}.weight": "50"}, ()),
        "promoted": ({f"models.{MODEL}.version": "2"}, (CANARY,)),
    }
    before, steps = inventory(platform.kube), {}
    plan = counting_plan(RPS, 500)
    with Load(plan, [over_http(platform, documents=SHORT), over_grpc(platform, documents=SHORT)]) as load:
        with platform.restored():
            for name, (values, without) in edits.items():
                if name == "promoted":
                    platform.promote(2)
                load.mark(f"edit: {name}")
                edit = platform.edit(values, without=without)
                assert edit.result.ok, edit.result.log
                time.sleep(PROPAGATION_SECONDS)
                load.mark(name)
                time.sleep(PHASE_SECONDS)
                steps[name] = Step(edit, inventory(platform.kube), pods_of(platform.kube, "v2"))
            load.mark("edit: restored")
        load.mark("restored")
        time.sleep(PHASE_SECONDS)
    return Life(load.report().raise_if_invalid(), before, steps)


@pytest.mark.parametrize("change", ["removed", "added", "promoted", "restored"])
def test_no_request_fails_while_versions_come_and_go(life: Life, change: str) -> None:
    for part in (life.report.phase(f"edit: {change}"), life.report.phase(change)):
        assert part.count > 0
        assert_no_failures(part)


@pytest.mark.parametrize(("change", "versions"), [("removed", {"1"}), ("added", {"1", "2"}), ("promoted", {"2"})])
def test_the_versions_that_the_stack_file_names_answer(life: Life, change: str, versions: set[str]) -> None:
    for protocol in ("http", "grpc"):
        assert set(life.report.phase(change).protocol(protocol).versions) == versions


def test_a_promotion_changes_the_route_and_deletes_the_old_version(life: Life) -> None:
    kinds = life.steps["promoted"].edit.changed_kinds()
    assert kinds[0] == ("update", "VirtualService")
    assert {operation for operation, _ in kinds[1:]} == {"delete"}


def test_a_promotion_restarts_no_pod_of_the_version_that_stays(life: Life) -> None:
    canary, promoted = life.steps["added"].pods, life.steps["promoted"].pods
    assert canary == promoted
    assert set(promoted.values()) == {0}


@pytest.mark.parametrize(("change", "gone"), [("removed", "v2"), ("promoted", "v1")])
def test_nothing_is_left_of_a_version_that_left(life: Life, change: str, gone: str) -> None:
    expected = {(kind, name) for kind, name in life.before if not name.startswith(f"{MODEL}-{gone}")}
    assert life.steps[change].objects == expected
    assert {kind for kind, _ in life.before - expected} == {"deployments", "configmaps", "poddisruptionbudgets", "destinationrules"}
