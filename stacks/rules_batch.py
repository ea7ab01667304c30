"""Rules between the batch jobs and the rest of the stack file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.batch.spec import memory_mib, place_of
from components.core.faults import Fault
from components.errors import PlatformError
from serving.batch.storage import NO_FILES_HINT
from serving.model_config import model_names
from serving.tensors import file_input
from stacks.models import manifest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from components.batch.spec import BatchJobSpec
    from stacks.config import StackConfig


def batch_faults(config: StackConfig) -> Iterator[Fault]:
    """A job's model is there and takes files, and no other job writes to its output."""
    owners: dict[str, str] = {}
    for name, job in config.batch_jobs.items():
        yield from _model_faults(config, name, job)
        yield from _memory_faults(config, name, job)
        output = place_of(job.output)
        if (owner := owners.setdefault(output, name)) != name:
            yield Fault(("batchJobs", name, "output"), f"is the output of {owner!r} already: {output}", "give each job an output of its own")


def _model_faults(config: StackConfig, name: str, job: BatchJobSpec) -> Iterator[Fault]:
    at = ("batchJobs", name, "model")
    if job.model not in config.models:
        yield Fault(at, f"the stack has no model {job.model!r}", f"models there are: {', '.join(config.models)}")
        return
    model = config.models[job.model]
    if (model.triton_name or job.model) not in model_names():
        return
    try:
        file_input(manifest_of(job.model, model).signature.inputs, NO_FILES_HINT)
    except PlatformError as error:
        yield Fault(at, error.message, error.hint)


def _memory_faults(config: StackConfig, name: str, job: BatchJobSpec) -> Iterator[Fault]:
    if job.model not in config.models:
        return
    largest = config.models[job.model].routing.max_request_mib
    if job.memory_mib < (least := memory_mib(job, largest)):
        reason = f"{job.memory_mib} cannot hold {job.in_flight} requests of {largest} MiB (routing.maxRequestMib of {job.model!r})"
        yield Fault(("batchJobs", name, "memoryMib"), reason, f"set it to at least {least}, or lower inFlight")
