"""Batch jobs of a stack: how their model is asked, and what is refused before anything changes."""

import pytest

from components.errors import ConfigError
from stacks.batch import batch_plan
from stacks.loader import load
from tests.documents import as_pulumi_passes, built, changed
from tests.unit.components.batch.jobs import BUCKET_IN, BUCKET_OUT

JOB = {"model": "magika", "input": BUCKET_IN, "output": BUCKET_OUT}


def config(**jobs):
    return changed("batchJobs", jobs)


def plan(document):
    return batch_plan(load("local", as_pulumi_passes(document)), "nightly")


def test_a_job_asks_through_the_gateway_so_that_the_weights_hold():
    made = plan(config(nightly=JOB))
    assert (made.address, made.authority) == ("inference-gateway.inference-gateway.svc.cluster.local:80", "magika.inference.test")
    assert (made.triton_name, made.max_batch, made.priority) == ("magika", 16, 0)


def test_a_job_asks_at_the_models_lowest_priority_level():
    document = config(nightly=JOB)
    document["inference-platform:models"]["magika"]["batching"]["priorities"] = {"levels": 3, "default": 1}
    assert plan(document).priority == 3


def test_a_stack_with_jobs_registers_them_after_the_route_of_their_model():
    recording = built(config(nightly=JOB))
    job = recording.one("Job")
    assert job.inputs["spec"]["template"]["spec"]["containers"][0]["image"] == "localhost/inference-platform/apps:0"
    account = recording.one("ServiceAccount", "nightly-batch")
    assert "magika-route-virtual-service" in {urn.rpartition("::")[2] for urn in account.dependencies}


def test_another_weight_starts_no_new_job():
    document = config(nightly=JOB)
    before = built(document).one("Job").inputs
    document["inference-platform:models"]["magika"]["canary"]["weight"] = 77
    assert built(document).one("Job").inputs == before


@pytest.mark.parametrize(
    ("jobs", "key", "reason"),
    [
        ({"nightly": {**JOB, "model": "other"}}, "batchJobs.nightly.model", "the stack has no model 'other'"),
        ({"nightly": JOB, "again": JOB}, "batchJobs.again.output", "is the output of 'nightly' already"),
        ({"nightly": {**JOB, "parallelism": 2}}, "batchJobs.nightly", "parallelism 2 is above shards 1"),
        ({"nightly": {**JOB, "inFlight": 64, "memoryMib": 512}}, "batchJobs.nightly.memoryMib", "cannot hold 64 requests of 2 MiB"),
        ({"Nightly": JOB}, "batchJobs", "no DNS label"),
    ],
)
def test_a_job_that_does_not_fit_the_stack_is_refused(jobs, key, reason):
    with pytest.raises(ConfigError) as refused:
        load("local", as_pulumi_passes(config(**jobs)))
    assert key in str(refused.value)
    assert reason in str(refused.value)


def test_a_model_that_takes_no_files_is_refused_in_words_of_the_job():
    document = config(nightly={**JOB, "model": "recognise"})
    models = document["inference-platform:models"]
    models["recognise"] = {key: value for key, value in models["magika"].items() if key != "canary"} | {"tritonName": "ocr_recognise"}
    with pytest.raises(ConfigError) as refused:
        load("local", as_pulumi_passes(document))
    [told] = [line for line in str(refused.value).splitlines() if "batchJobs.nightly.model" in line]
    assert "a file is no tensor 'x' of type FP32 and shape [-1, 3, 48, -1]" in told
    assert "use a model whose one input takes a file" in str(refused.value)
    assert "front" not in str(refused.value)
