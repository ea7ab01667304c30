"""A weight edit moves the traffic, touches one object, and no request notices."""

import time

import pytest

from loadtests.engine import Load
from loadtests.report import Report
from tests.e2e.platform import MODEL, NAMESPACE, VIRTUAL_SERVICES, Edit, Platform
from tests.e2e.traffic import PROPAGATION_SECONDS, SHORT, SPLIT_RPS, assert_no_failures, assert_split, counting_plan, over_grpc, over_http

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

REQUESTS_PER_SPLIT = 10_000
# A little longer than the requests take, so that the count is reached whatever the clocks do.
SPLIT_SECONDS = REQUESTS_PER_SPLIT / SPLIT_RPS + 2
WEIGHTS = (10, 50, 0)
EDIT_SECONDS_MAX = 15.0


def phase(weight: int) -> str:
    return f"weight {weight}"


@pytest.fixture(scope="module")
def edits_under_load(platform: Platform) -> tuple[Report, dict[int, Edit]]:
    """One run over all weights, with the edits in it."""
    plan = counting_plan(SPLIT_RPS, len(WEIGHTS) * (SPLIT_SECONDS + 60))
    edits = {}
    with platform.restored():
        assert platform.set_weight(WEIGHTS[0]).result.ok
        with Load(plan, [over_http(platform, documents=SHORT), over_grpc(platform, documents=SHORT)]) as load:
            for weight in WEIGHTS:
                if weight != WEIGHTS[0]:
                    load.mark(f"edit to {weight}")
                    edits[weight] = platform.set_weight(weight)
                    time.sleep(PROPAGATION_SECONDS)
                load.mark(phase(weight))
                time.sleep(SPLIT_SECONDS)
        return load.report().raise_if_invalid(), edits


def test_no_request_fails_also_while_the_weights_change(edits_under_load: tuple[Report, dict[int, Edit]]) -> None:
    assert_no_failures(edits_under_load[0])


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_split_is_what_the_stack_file_says(edits_under_load: tuple[Report, dict[int, Edit]], weight: int) -> None:
    report = edits_under_load[0].phase(phase(weight))
    assert report.count >= REQUESTS_PER_SPLIT
    for part in (report, report.protocol("http"), report.protocol("grpc")):
        assert_split(part, weight)


@pytest.mark.parametrize("weight", WEIGHTS[1:])
def test_an_edit_changes_one_object_in_time_and_is_in_force_at_once(edits_under_load: tuple[Report, dict[int, Edit]], weight: int) -> None:
    report, edits = edits_under_load
    edit = edits[weight]
    assert edit.result.ok, edit.result.log
    assert edit.changed_kinds() == [("update", "VirtualService")], edit.result.changes
    assert edit.seconds <= EDIT_SECONDS_MAX
    # Three seconds are 300 requests: enough to tell 10 from 50 and 50 from 0 percent.
    in_force = edit.returned + PROPAGATION_SECONDS
    assert_split(report.between(in_force, in_force + 3), weight)


def test_a_second_up_changes_nothing(platform: Platform) -> None:
    result = platform.stack.up()
    assert result.ok, result.log
    assert result.changes == ()


def test_a_deleted_route_is_repaired_and_nothing_else(platform: Platform) -> None:
    platform.kube.delete(VIRTUAL_SERVICES, MODEL, NAMESPACE)
    edit = platform.edit({}, "--refresh")
    assert edit.result.ok, edit.result.log
    assert edit.changed_kinds() == [("create", "VirtualService")], edit.result.changes
    time.sleep(PROPAGATION_SECONDS)
    with Load(counting_plan(50, 4), [over_http(platform), over_grpc(platform)]) as load:
        assert_no_failures(load.finish())


@pytest.mark.parametrize("weight", ["101", "-1", "12.5", "ten"])
def test_a_weight_that_cannot_be_is_refused_before_anything_changes(platform: Platform, weight: str) -> None:
    before = platform.kube.get(VIRTUAL_SERVICES, MODEL, NAMESPACE)
    path = f"models.{MODEL}.canary.weight"
    with platform.restored():
        edit = platform.edit({path: weight})
        assert not edit.result.ok
        assert edit.changed_kinds() == []
        assert path in edit.result.log
        assert platform.kube.get(VIRTUAL_SERVICES, MODEL, NAMESPACE) == before
