"""Models and servers that tests talk about."""

from dataclasses import replace

from components.core.model_identity import ModelIdentity
from components.core.rollout import ReplicaRange
from components.inference.plan import plan_versions
from components.inference.spec import LoadedModel, ModelFootprint, ModelVersion, ServerSpec

IDENTITY = ModelIdentity(name="magika", triton_name="magika_files", namespace="inference")
FOOTPRINT = ModelFootprint(instances=2, memory_mib=128, shared_memory_mib=0, load_budget_seconds=40, python_backend="python")
FILES = "f1" * 32
PBTXT = 'name: "magika_files"\n'


def loaded(name="magika_files", pbtxt=PBTXT, **footprint):
    """A model of a server."""
    return LoadedModel(name=name, version=1, size_bytes=3_000_000, files_sha256=FILES, config_pbtxt=pbtxt, footprint=replace(FOOTPRINT, **footprint))


def version(number=1, *, replicas=1, pbtxt=PBTXT, steps=(), **footprint):
    """A version whose server loads the model itself and `steps`."""
    count = replicas if isinstance(replicas, ReplicaRange) else ReplicaRange.of(replicas)
    return ModelVersion(version=number, models=(loaded(pbtxt=pbtxt, **footprint), *steps), replicas=count)


def server(**values):
    """A server as the stack file gives it, with camelCase keys."""
    return ServerSpec.model_validate(values)


def plan(values=None, *, pool=None, siblings=(), **footprint):
    """Plan of version 1 of the model; what is not about the version or its model is a value of the server."""
    return plan_versions(IDENTITY, server(**(values or {})), pool, (version(**footprint), *siblings))[0]
