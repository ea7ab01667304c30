"""A batch job of the stack: through the gateway, out of an object store and back, once and only once."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import yaml

from components import labels
from serving.batch.ledger import records_of
from serving.batch.places import place
from serving.batch.verdict import check, shards_of
from tests.e2e.in_cluster import CREDENTIALS, SECRET, SECRET_NAME, apps_image, object_store
from tests.e2e.kube import Manifest
from tests.e2e.platform import MODEL, NAMESPACE, PREFIX, Edit, Platform
from tests.e2e.waits import wait_for
from tools.paths import REPO

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

JOB, BUCKET, COPIES = "files", "documents", 3
FILES = {path.relative_to(REPO).as_posix(): path.read_bytes() for folder in ("components", "loadtests") for path in (REPO / folder).rglob("*.py")}
POD_SECONDS = 240


@pytest.fixture(scope="module")
def endpoint(platform: Platform) -> Iterator[str]:
    """A store with the project's own sources, some times over."""
    with pytest.MonkeyPatch.context() as patch, object_store() as endpoint, platform.kube.created([SECRET]):
        for name, value in {**CREDENTIALS, "AWS_DEFAULT_REGION": "us-east-1"}.items():
            patch.setenv(name, value)
        client = boto3.client("s3", endpoint_url=endpoint)
        client.create_bucket(Bucket=BUCKET)
        for number in range(COPIES):
            for name, content in FILES.items():
                client.put_object(Bucket=BUCKET, Key=f"in/{number}/{name}", Body=content)
        yield endpoint


def write(platform: Platform, endpoint: str, **keys: Any) -> Edit:
    """The job in the stack file, and `pulumi up`."""
    file = platform.stack.config_file
    assert file is not None
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    places = {key: {"kind": "objectStore", "bucket": BUCKET, "prefix": prefix} for key, prefix in (("input", "in"), ("output", "out"))}
    access = {"endpoint": endpoint, "secret": SECRET_NAME, "region": "us-east-1"}
    document["config"][f"{PREFIX}images"] = {"apps": apps_image()}
    document["config"][f"{PREFIX}batchJobs"] = {JOB: {"model": MODEL, **places, "objectStore": access, "cpuRequest": 0.05, **keys}}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return platform.edit({})


def jobs(platform: Platform) -> list[Manifest]:
    return platform.kube.find("jobs", NAMESPACE, labels.batch(JOB))


def wait_complete(platform: Platform, former: str = "") -> str:
    """The uid of the job, once it is complete and another than `former`."""

    def done(found: list[Manifest]) -> bool:
        return len(found) == 1 and found[0]["metadata"]["uid"] != former and found[0].get("status", {}).get("succeeded", 0) == 2

    [job] = wait_for("the job is complete", lambda: jobs(platform), done, seconds=POD_SECONDS)
    return str(job["metadata"]["uid"])


def test_a_job_answers_every_object_once_though_a_pod_of_it_is_stopped_on_the_way(platform: Platform, endpoint: str) -> None:
    """A Job's template cannot change, so an edit is another Job, which finds everything answered."""
    with platform.restored():
        edit = write(platform, endpoint, shards=2, parallelism=2)
        assert edit.result.ok, edit.result.log
        assert Counter(edit.changed_kinds()) == Counter([("create", "ServiceAccount"), ("create", "Job"), ("create", "NetworkPolicy")])
        running = wait_for(
            "a pod runs", lambda: platform.kube.find("pods", NAMESPACE, labels.batch(JOB)), lambda found: len(found) == 2, seconds=POD_SECONDS
        )
        platform.kube.delete("pods", running[0]["metadata"]["name"], NAMESPACE)
        first = wait_complete(platform)
        source, output = place(f"s3://{BUCKET}/in", endpoint), place(f"s3://{BUCKET}/out", endpoint)
        verdict = check(source.items(), output)
        assert verdict.complete, verdict
        assert (verdict.total, verdict.failed) == (COPIES * len(FILES), [])
        answered = [record for shard in shards_of(output) for record in records_of(output.below(shard.folder))]
        assert all(record.outputs is not None and record.outputs["label"] in {"python", "empty"} for record in answered)
        again = platform.edit({})
        assert again.result.ok
        assert again.changed_kinds() == []
        changed = write(platform, endpoint, shards=2, parallelism=2, inFlight=2)
        assert changed.result.ok, changed.result.log
        wait_complete(platform, first)
        assert [record for shard in shards_of(output) for record in records_of(output.below(shard.folder))] == answered
    assert jobs(platform) == []
