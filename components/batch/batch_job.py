"""BatchJob: a model's answers about every item of a directory or prefix."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.batch.v1 import Job
from pulumi_kubernetes.core.v1 import ServiceAccount

from components.base import PlatformComponent
from components.batch import job_manifest as manifest
from components.batch.job_manifest import BatchJobPlan


@dataclass(frozen=True, kw_only=True)
class BatchJobArgs:
    """`image` is a plain text, since the Job is named after what it runs; `after` is made first: the model's route."""

    plan: BatchJobPlan
    image: str
    after: Sequence[pulumi.Resource]


class BatchJob(PlatformComponent):
    """Makes ServiceAccount and Job. Output: `job_name`, the Job's name, known once it is there; nothing waits for its end."""

    AREA = "batch"

    job_name: pulumi.Output[str]

    def __init__(self, name: str, args: BatchJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        body = manifest.build_service_account(args.plan)
        account = ServiceAccount(
            f"{name}-account",
            metadata=body["metadata"],
            automount_service_account_token=body["automountServiceAccountToken"],
            opts=self.child_opts(depends_on=list(args.after)),
        )
        job = Job(
            f"{name}-job",
            **manifest.build_job(args.plan, args.image),
            # The old one goes before the new one comes: both would write the same output.
            opts=self.child_opts(depends_on=[account], delete_before_replace=True),
        )
        self.job_name = job.metadata["name"]
        self.register_outputs({"jobName": self.job_name})
