"""What the parts of one served version have in common: every decision is taken here, once, before anything is made."""

import json
from dataclasses import dataclass

from components.core.model_identity import ModelIdentity
from components.core.requests import DEFAULT_LIMITS, RequestLimits
from components.core.rollout import ReplicaRange
from components.errors import ManifestError
from components.inference.gpu_memory import check_gpu_memory
from components.inference.lifecycle import Drain, await_timeout, awaits_ready, load_seconds, plan_drain, progress_deadline
from components.inference.memory import check_memory, plan_shared_memory, shm_mib_per_instance
from components.inference.placement import Placement, PoolUse, place
from components.inference.repository_manifest import IN_IMAGE, RepositoryUse
from components.inference.spec import LoadedModel, ModelVersion, ServerSpec
from components.naming import content_hash, k8s_name


@dataclass(frozen=True, kw_only=True)
class VersionPlan:
    """One version of a model, planned; times in seconds, memory in MiB."""

    identity: ModelIdentity
    version: int
    server: ServerSpec
    replicas: ReplicaRange
    models: tuple[LoadedModel, ...]
    repository: RepositoryUse
    drain: Drain
    load: int
    progress_deadline: int
    await_timeout: int
    placement: Placement
    shm_mib: int | None
    shm_mib_per_instance: int | None
    server_arguments: tuple[str, ...]

    @property
    def deployment(self) -> str:
        return self.identity.deployment(self.version)

    @property
    def configs(self) -> dict[str, str]:
        """Text of each model's config.pbtxt by the model's name."""
        return {model.name: model.config_pbtxt for model in self.models}

    @property
    def warmup_files(self) -> dict[str, bytes]:
        """Files for warming up, by `<model>/<file>`."""
        return {f"{model.name}/{name}": data for model in self.models for name, data in model.warmup_files.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before the version is rolled out."""
        surge = self.placement.surge.warning
        return (*((surge,) if surge else ()), *(warning for model in self.models for warning in model.warnings))

    @property
    def config_map(self) -> str:
        """Named after the content, so that a change makes a new object and rolls the pods, and equal text changes nothing (pulumi/pulumi#2167)."""
        content = {**self.configs, **{key: data.hex() for key, data in self.warmup_files.items()}}
        return k8s_name(self.deployment, "config", content_hash(json.dumps(content, sort_keys=True)))

    @property
    def awaits_ready(self) -> bool:
        return awaits_ready(self.replicas)


def plan_versions(
    identity: ModelIdentity,
    server: ServerSpec,
    pool: PoolUse | None,
    versions: tuple[ModelVersion, ...],
    repository: RepositoryUse = IN_IMAGE,
    limits: RequestLimits = DEFAULT_LIMITS,
) -> list[VersionPlan]:
    """Plans of all versions of a model in the order given; ManifestError when they do not fit together, their server or their pool."""
    numbers = [version.version for version in versions]
    if not numbers or len(set(numbers)) != len(numbers):
        raise ManifestError(
            f"model {identity.name!r}: versions {numbers} to serve",
            hint="name at least one version, and each once: version and canary.version differ",
        )
    return [_plan(identity, server, version, _placement(identity, server, pool, version, versions), repository, limits) for version in versions]


def _placement(
    identity: ModelIdentity, server: ServerSpec, pool: PoolUse | None, version: ModelVersion, versions: tuple[ModelVersion, ...]
) -> Placement:
    placement = place(identity, server, pool, version, tuple(other for other in versions if other is not version))
    check_gpu_memory(identity.name, server, pool, version.footprints)
    return placement


def _plan(
    identity: ModelIdentity,
    server: ServerSpec,
    version: ModelVersion,
    placement: Placement,
    repository: RepositoryUse,
    limits: RequestLimits,
) -> VersionPlan:
    drain = plan_drain(server)
    shm_mib = plan_shared_memory(identity.name, server, version.footprints, limits)
    check_memory(identity.name, server, version.footprints, limits, shm_mib)
    load = load_seconds(server, version.footprints)
    deadline = progress_deadline(server, load + repository.fetch_seconds, drain)
    return VersionPlan(
        identity=identity,
        version=version.version,
        server=server,
        replicas=version.replicas,
        models=version.models,
        repository=repository,
        drain=drain,
        load=load,
        progress_deadline=deadline,
        await_timeout=await_timeout(deadline, version.replicas, placement.surge),
        placement=placement,
        shm_mib=shm_mib,
        shm_mib_per_instance=shm_mib_per_instance(server, version.footprints),
        server_arguments=version.server_arguments,
    )
