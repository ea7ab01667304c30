"""The Job of a batch run: what it runs, when it is tried again, what it may do."""

import subprocess
import sys
from dataclasses import replace

import pytest
from pydantic import ValidationError

from components import labels
from components.batch.job_manifest import FINAL_EXIT_CODES, build_arguments, build_job, build_service_account
from serving.batch.__main__ import Exit
from serving.batch.arguments import parse
from tests.unit.components.batch.jobs import BUCKET_IN, BUCKET_OUT, IMAGE, VOLUME_IN, VOLUME_OUT, plan, spec


def job(**keys):
    return build_job(plan(**keys), IMAGE)["spec"]


def pod(**keys):
    return job(**keys)["template"]["spec"]


def container(**keys):
    [only] = pod(**keys)["containers"]
    return only


def test_the_client_understands_its_command_line(monkeypatch):
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "3")
    words = build_arguments(plan(shards=4, changed="redo", retryFailed=True, objectStore={"endpoint": "http://store:9000"}))
    arguments = parse(words, "")
    assert (arguments.input, arguments.output) == ("s3://documents/in/2024", "s3://documents/out")
    assert (arguments.address, arguments.authority, arguments.model) == ("gateway.example:80", "magika.inference.test", "magika")
    assert (arguments.max_batch, arguments.priority, arguments.timeout_seconds) == (16, 2, 60)
    assert (arguments.shard.index, arguments.shard.count) == (3, 4)
    assert (arguments.batch_mib, arguments.item_mib) == (2, 2)
    assert (arguments.changed, arguments.retry_failed, arguments.endpoint_url) == ("redo", True, "http://store:9000")
    assert container()["args"][:2] == ["serving.batch", "run"]


@pytest.mark.parametrize(("timeout", "outage"), [(60, 600), (3600, 7200)])
def test_a_model_with_a_long_time_limit_is_given_longer_before_it_counts_as_away(timeout, outage, monkeypatch):
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
    arguments = parse(build_arguments(replace(plan(), timeout_seconds=timeout)), "")
    assert (arguments.timeout_seconds, arguments.outage_seconds) == (timeout, outage)


def test_volumes_are_mounted_where_the_client_looks_and_the_input_cannot_be_written():
    only = container(input=VOLUME_IN, output=VOLUME_OUT)
    assert only["args"][2:4] == ["/input", "/output"]
    assert only["volumeMounts"] == [
        {"name": "place-0", "mountPath": "/input", "subPath": "in", "readOnly": True},
        {"name": "place-0", "mountPath": "/output", "subPath": "out"},
    ]
    assert pod(input=VOLUME_IN, output=VOLUME_OUT)["volumes"] == [{"name": "place-0", "persistentVolumeClaim": {"claimName": "documents"}}]
    assert (pod()["volumes"], container()["volumeMounts"]) == ([], [])


def test_a_shard_has_a_pod_and_is_tried_again_by_itself():
    made = job(shards=8, parallelism=2, retries=3)
    assert (made["completionMode"], made["completions"], made["parallelism"], made["backoffLimitPerIndex"]) == ("Indexed", 8, 2, 3)
    assert "--shard=/8" in made["template"]["spec"]["containers"][0]["args"]
    # A replacement that comes while the former pod still ends would find its output locked.
    assert made["podReplacementPolicy"] == "Failed"


def test_only_what_another_try_can_change_is_tried_again():
    ignore, final = job()["podFailurePolicy"]["rules"]
    assert ignore == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert final["action"] == "FailIndex"
    assert set(FINAL_EXIT_CODES) == {Exit.REFUSED, 2, Exit.ITEMS_FAILED}
    crashed = subprocess.run([sys.executable, "-c", "raise MemoryError"], stderr=subprocess.DEVNULL, check=False).returncode
    assert not {Exit.DONE, Exit.NO_SERVER, Exit.NO_STORE, Exit.IN_USE, crashed, 137, 143} & set(FINAL_EXIT_CODES)
    assert pod()["restartPolicy"] == "Never", "a pod failure policy knows no other"


def test_another_template_is_another_job_and_the_same_is_the_same():
    names = {build_job(plan(**keys), image)["metadata"]["name"] for keys, image in (({}, IMAGE), ({"inFlight": 5}, IMAGE), ({}, "apps:2"))}
    assert len(names) == 3
    assert build_job(plan(), IMAGE) == build_job(plan(), IMAGE)


def test_nobody_waits_for_its_end():
    assert build_job(plan(), IMAGE)["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


def test_a_stopped_pod_has_time_for_the_longest_request_and_for_storing_its_answer():
    assert pod()["terminationGracePeriodSeconds"] == 60 + 30


def test_its_pods_are_no_pods_of_the_model():
    """The model's Service would send them requests."""
    assert labels.MODEL not in job()["template"]["metadata"]["labels"]


def test_credentials_come_from_a_secret_or_a_role_and_stand_nowhere():
    only = container(objectStore={"secret": "store", "region": "eu-west-1"})
    assert only["env"][0] == {"name": "AWS_DEFAULT_REGION", "value": "eu-west-1"}
    assert {variable["valueFrom"]["secretKeyRef"]["name"] for variable in only["env"][1:]} == {"store"}
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/batch"}
    assert build_service_account(plan(objectStore={"serviceAccountAnnotations": role}))["metadata"]["annotations"] == role
    assert container()["env"] == []


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"parallelism": 2}, "parallelism 2 is above shards 1"),
        ({"cpuRequest": 2.0}, "cpuRequest 2 is above cpuLimit 1"),
        ({"output": BUCKET_IN}, "lie inside each other"),
        ({"output": {**BUCKET_OUT, "prefix": "in"}}, "lie inside each other"),
        ({"input": VOLUME_IN, "output": VOLUME_OUT, "objectStore": {}}, "neither input nor output lies in one"),
        ({"input": {**BUCKET_IN, "prefix": "../x"}}, "prefix"),
        ({"input": {**VOLUME_IN, "path": ""}}, "path"),
        ({"objectStore": {"secret": "a", "serviceAccountAnnotations": {"a": "b"}}}, "keep one of them"),
        ({"changed": "ignore"}, "refuse"),
        ({"replicas": 1}, "replicas"),
    ],
)
def test_a_job_that_cannot_be_is_refused(keys, reason):
    with pytest.raises(ValidationError, match=reason):
        spec(**keys)
