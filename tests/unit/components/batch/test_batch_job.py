"""What a batch job registers."""

import pulumi
import pulumi_kubernetes as k8s

from components.batch.batch_job import BatchJob, BatchJobArgs
from tests.engine import run
from tests.unit.components.batch.jobs import IMAGE, plan


def build(**keys):
    provider = k8s.Provider("cluster", kubeconfig="{}", context="x")
    route = k8s.core.v1.Namespace("route", metadata={"name": "route"}, opts=pulumi.ResourceOptions(provider=provider))
    BatchJob("nightly-batch", BatchJobArgs(plan=plan(**keys), image=IMAGE, after=[route]), pulumi.ResourceOptions(providers=[provider]))


def test_the_job_comes_after_its_account_and_the_account_after_the_route():
    recording = run(build)
    assert recording.one("ServiceAccount").urn in recording.one("Job").dependencies
    assert recording.one("Namespace", "route").urn in recording.one("ServiceAccount").dependencies


def test_its_output_is_the_name_of_the_job():
    recording = run(build)
    job = recording.one("Job")
    assert recording.outputs[job.parent] == {"jobName": job.inputs["metadata"]["name"]}


def test_a_change_names_another_job_and_leaves_the_account():
    before, after = ({each.name: each.inputs for each in run(program).kubernetes} for program in (build, lambda: build(inFlight=3)))
    assert [name for name in after if before[name] != after[name]] == ["nightly-batch-job"]
    assert before["nightly-batch-job"]["metadata"]["name"] != after["nightly-batch-job"]["metadata"]["name"]
