"""Plans of batch jobs, for the tests of everything that takes one."""

from components.batch.job_manifest import BatchJobPlan
from components.batch.spec import BatchJobSpec

IMAGE = "registry.example.com/apps:1"
BUCKET_IN = {"kind": "objectStore", "bucket": "documents", "prefix": "in/2024"}
BUCKET_OUT = {"kind": "objectStore", "bucket": "documents", "prefix": "out"}
VOLUME_IN = {"kind": "volume", "claim": "documents", "path": "in"}
VOLUME_OUT = {"kind": "volume", "claim": "documents", "path": "out"}


def spec(**keys):
    """A spec from the keys of a stack file."""
    return BatchJobSpec.model_validate({"model": "magika", "input": BUCKET_IN, "output": BUCKET_OUT, **keys})


def plan(name="nightly", **keys):
    return BatchJobPlan(
        name=name,
        namespace="inference",
        spec=spec(**keys),
        triton_name="magika",
        address="gateway.example:80",
        authority="magika.inference.test",
        max_batch=16,
        priority=2,
        timeout_seconds=60,
        max_request_mib=2,
    )
