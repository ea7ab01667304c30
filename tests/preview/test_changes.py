"""What an edit of the stack file does to a running platform, as the engine plans and does it."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from serving.registry import rules
from tests.e2e.platform import changed_kinds
from tests.preview.project import Project

pytestmark = pytest.mark.preview


@pytest.fixture
def edited(running: Project) -> Iterator[Project]:
    """The running project; its stack file and its objects are put back afterwards."""
    committed = running.stack_file.read_bytes()
    yield running
    running.stack_file.write_bytes(committed)
    restored = running.stack.up()
    assert restored.ok, restored.log


def test_nothing_changed_means_nothing_to_do(running: Project) -> None:
    for result in (running.stack.preview(), running.stack.preview("--refresh"), running.stack.up()):
        assert result.ok, result.log
        assert result.changes == ()


def test_another_kubeconfig_path_means_nothing_to_do(running: Project, tmp_path: Path) -> None:
    """The state of one user must not look changed to the next."""
    elsewhere = shutil.copy(running.stack.env["KUBECONFIG"], tmp_path / "config")
    result = replace(running.stack, env={**running.stack.env, "KUBECONFIG": str(elsewhere)}).preview()
    assert result.ok, result.log
    assert result.changes == ()


def test_a_weight_touches_one_object(edited: Project) -> None:
    edited.stack.set_config("models.magika.canary.weight", "25")
    preview = edited.stack.preview()
    assert changed_kinds(preview) == [("update", "VirtualService")]
    assert preview.changes == edited.stack.up().changes


def test_a_batch_job_is_started_and_not_awaited_and_an_edit_of_it_replaces_it(edited: Project) -> None:
    """The API server takes the whole object; no pod of it ever ends here, so that a wait would be seen."""
    places = {key: {"kind": "objectStore", "bucket": "documents", "prefix": key} for key in ("input", "output")}
    job = {"model": "magika", **places, "objectStore": {"secret": "documents"}, "shards": 2}
    edited.edit("batchJobs", {"nightly": job})
    first = edited.stack.up()
    assert first.ok, first.log
    assert sorted(changed_kinds(first)) == [("create", "Job"), ("create", "NetworkPolicy"), ("create", "ServiceAccount")]
    assert edited.stack.preview("--refresh").changes == ()
    edited.edit("batchJobs", {"nightly": {**job, "inFlight": 8}})
    second = edited.stack.up()
    assert second.ok, second.log
    assert changed_kinds(second) == [("delete-replaced", "Job"), ("replace", "Job"), ("create-replacement", "Job")]


def test_a_batching_change_updates_the_deployment_and_replaces_no_workload(edited: Project) -> None:
    """pulumi/pulumi#2167, pulumi/pulumi-kubernetes#1567."""
    edited.edit("models.magika.canary", None)
    edited.edit("models.magika.batching", {"maxBatchSize": 8, "maxQueueDelayMicroseconds": 100})
    first = edited.stack.up()
    assert first.ok, first.log
    edited.stack.set_config("models.magika.batching.maxQueueDelayMicroseconds", "500")
    result = edited.stack.up()
    assert result.ok, result.log
    kinds = changed_kinds(result)
    assert [operation for operation, kind in kinds if kind == "Deployment"] == ["update"]
    assert {kind for operation, kind in kinds if operation != "update"} == {"ConfigMap"}
    config_map = [operation for operation, kind in kinds if kind == "ConfigMap"]
    assert config_map.index("create-replacement") < config_map.index("delete-replaced")
    assert kinds.index(("update", "Deployment")) < kinds.index(("delete-replaced", "ConfigMap"))


def test_a_change_that_leaves_the_rendered_text_alone_changes_nothing(running: Project) -> None:
    """pulumi/pulumi-kubernetes#1568."""
    committed = running.stack_file.read_bytes()
    text = running.stack_file.read_text(encoding="utf-8")
    running.stack_file.write_text("# a comment\n" + text, encoding="utf-8")
    # The committed size, with a default written out.
    running.edit("models.magika.batching", {"preferredSizes": [], "maxBatchSize": 16})
    try:
        result = running.stack.preview()
    finally:
        running.stack_file.write_bytes(committed)
    assert result.ok, result.log
    assert result.changes == ()


def test_a_canary_leaves_the_route_first_and_its_subset_last(edited: Project) -> None:
    edited.edit("models.magika.canary", None)
    result = edited.stack.up()
    assert result.ok, result.log
    kinds = changed_kinds(result)
    assert kinds[0] == ("update", "VirtualService")
    assert kinds.index(("delete", "Deployment")) < kinds.index(("delete", "DestinationRule"))
    assert {operation for operation, _ in kinds[1:]} == {"delete"}


def test_promotion_touches_the_route_and_removes_the_old_version(edited: Project) -> None:
    edited.registry.take("magika", lambda model: rules.promote(model, 2))
    edited.edit("models.magika.canary", None)
    edited.edit("models.magika.version", 2)
    result = edited.stack.preview()
    assert result.ok, result.log
    kinds = changed_kinds(result)
    assert [kind for operation, kind in kinds if operation == "update"] == ["VirtualService"]
    assert not [kind for operation, kind in kinds if operation not in {"update", "delete"}]


def test_a_model_without_pods_is_not_waited_for_and_every_other_is(edited: Project) -> None:
    """pulumi/pulumi-kubernetes#605, #712: neither its Deployment nor its Service, which has no endpoint, holds an update up."""
    edited.edit("models.idle", {"tritonName": "magika", "version": 1, "server": {"replicas": 0}, "slo": {"p99Ms": 200, "errorRatio": 0.01}})
    result = edited.stack.up()
    assert result.ok, result.log
    # The gateway's one table of request limits gets a row.
    assert [kind for operation, kind in changed_kinds(result) if operation != "create"] == ["EnvoyFilter"]
    resources = json.loads(edited.resources())
    unawaited = {
        (entry["type"].rsplit(":", 1)[-1], entry["inputs"]["metadata"]["name"])
        for entry in resources
        if "pulumi.com/skipAwait" in entry.get("inputs", {}).get("metadata", {}).get("annotations", {})
    }
    assert unawaited == {("Deployment", "idle-v1"), ("Service", "idle")}
