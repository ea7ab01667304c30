"""What a batch job is told: where its model answers, and how it may be asked. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from components.batch.job_manifest import BatchJobPlan
from components.traffic.gateway_manifest import HTTP_SERVER_PORT, SERVICE_HOST
from components.traffic.istio_manifest import external_host
from stacks.models import manifest_of

if TYPE_CHECKING:
    from stacks.config import StackConfig


def batch_plan(config: StackConfig, name: str) -> BatchJobPlan:
    """The job as the stack's model answers it: through the gateway, in the model's own batches, at its lowest priority level."""
    job = config.batch_jobs[name]
    model = config.models[job.model]
    priorities = model.batching.priorities
    return BatchJobPlan(
        name=name,
        namespace=config.cluster.namespace,
        spec=job,
        triton_name=manifest_of(job.model, model).name,
        address=f"{SERVICE_HOST}:{HTTP_SERVER_PORT}",
        authority=external_host(model.identity(job.model, config.cluster.namespace), model.routing, config.gateway.domain),
        max_batch=max(1, model.batching.max_batch_size),
        priority=priorities.levels if priorities is not None else 0,
        timeout_seconds=math.ceil(model.routing.timeout_seconds),
        max_request_mib=model.routing.max_request_mib,
    )
