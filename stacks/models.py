"""From what a stack says about a model to what its components take; pure, so that every misfit shows before anything is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.core.model_repository import NodeCache
from components.core.rollout import Demand, ReplicaRange
from components.inference.placement import PoolUse
from components.inference.repository_manifest import CacheUse, RepositoryUse
from components.inference.spec import NO_FOOTPRINT, LoadedModel, ModelFootprint, ModelVersion
from serving.artefact import files_sha256, version_files
from serving.model_config import (
    ImageVariant,
    ModelManifest,
    ServingSpec,
    backend_of,
    model_manifest,
    part_serving,
    render_config,
    server_models,
    warmup_files,
)

if TYPE_CHECKING:
    from stacks.config import ModelSpec, StackConfig


def manifest_of(name: str, model: ModelSpec) -> ModelManifest:
    """The published model behind the stack's `name`; ManifestError when there is none."""
    return model_manifest(model.triton_name or name)


def parts_of(manifest: ModelManifest, version: int) -> tuple[tuple[ModelManifest, int], ...]:
    """The models, with their versions, that a server of this version loads; ManifestError when it is not published or its steps do not fit together."""
    return server_models(manifest, version, model_manifest)


def served_versions(name: str, model: ModelSpec, variant: ImageVariant) -> tuple[ModelVersion, ...]:
    """The versions that run, the stable one first; ManifestError for one that cannot be served as configured."""
    manifest = manifest_of(name, model)
    return tuple(_served(manifest, name, model, version, variant) for version in model.versions)


def pool_use(config: StackConfig, name: str) -> PoolUse | None:
    """The node pool of a model and what the other models take of it; None without GPUs, or when the pool is not there."""
    pool = config.models[name].server.node_pool
    if pool is None or pool not in config.node_pools:
        return None
    others = [
        Demand(model.server.replicas, model.server.gpus_per_replica, model.identity(other, config.cluster.namespace).deployment(version))
        for other, model in config.models.items()
        if other != name and model.server.node_pool == pool
        for version in model.versions
    ]
    return PoolUse(name=pool, spec=config.node_pools[pool], others=tuple(others))


def repository_use(config: StackConfig, name: str) -> RepositoryUse:
    """Where the model's files come from, and the cache on its nodes that keeps what was downloaded."""
    model = config.models[name]
    cache = _node_cache(config, model)
    return RepositoryUse(spec=model.repository, cache=None if cache is None else CacheUse(claim=cache.claim, size_gib=cache.spec.size_gib))


def node_caches(config: StackConfig) -> list[NodeCache]:
    """Caches that at least one model uses."""
    used = {cache.claim: cache for model in config.models.values() if (cache := _node_cache(config, model)) is not None}
    return [used[claim] for claim in sorted(used)]


def _node_cache(config: StackConfig, model: ModelSpec) -> NodeCache | None:
    pool = model.server.node_pool
    spec = config.cluster.model_cache if pool is None else config.node_pools[pool].model_cache if pool in config.node_pools else None
    return NodeCache(pool=pool, spec=spec) if spec is not None and model.repository.kind == "objectStore" else None


def requests_per_batch(model: ServingSpec) -> int:
    """Requests that a copy may run at once: without a batcher each is run alone, with as many rows as it has."""
    return max(1, model.batching.max_batch_size) if model.batching.has_batcher or model.sequence is not None else 1


def _served(manifest: ModelManifest, name: str, model: ModelSpec, version: int, variant: ImageVariant) -> ModelVersion:
    models = tuple(_loaded(part, name, model, part_serving(manifest, part, model), number, variant) for part, number in parts_of(manifest, version))
    return ModelVersion(
        version=version,
        models=models,
        replicas=ReplicaRange.of(model.server.replicas),
        server_arguments=() if model.rate_limiter is None else model.rate_limiter.server_arguments(),
    )


def _stall_warnings(manifest: ModelManifest, name: str, serving: ServingSpec, instances: int) -> tuple[str, ...]:
    """Triton 2.51 with one copy and no batch fetched ahead (triton-inference-server/core src/dynamic_batch_scheduler.cc, BatcherThread)."""
    if instances != 1 or not serving.batching.has_batcher or serving.batching.fetches_ahead:
        return ()
    warning = (
        f"model {manifest.name!r} has one instance, and batching.priorities or batching.queue: Triton then fetches no batch ahead and may pause "
        f"500 ms between two batches of a burst; set models.{name}.instances.count: 2, or drop both keys"
    )
    return (warning,)


def _loaded(manifest: ModelManifest, name: str, model: ModelSpec, serving: ServingSpec, version: int, variant: ImageVariant) -> LoadedModel:
    """One of the models of a server of the stack's model `name`; `serving` is what that says as far as it concerns this one."""
    instances = serving.instances.per_pod(model.server.cpu_limit, model.server.gpus_per_replica)
    return LoadedModel(
        name=manifest.name,
        config_pbtxt=render_config(manifest, version, serving, variant, cpu_cores=model.server.cpu_limit),
        version=version,
        files_sha256=files_sha256(version_files(manifest, version)),
        size_bytes=sum(file.size_bytes for file in manifest.version(version).files),
        footprint=NO_FOOTPRINT
        if manifest.format == "ensemble"
        else ModelFootprint(
            instances=instances,
            max_batch=requests_per_batch(serving),
            max_rows=serving.batching.max_batch_size or None,
            memory_mib=manifest.version(version).memory_mib,
            memory_mib_per_row=manifest.version(version).memory_mib_per_row,
            waiting_mib_per_row=manifest.version(version).waiting_mib_per_row,
            shared_memory_mib=manifest.shared_memory_mib,
            shared_memory_mib_per_row=manifest.shared_memory_mib_per_row,
            load_budget_seconds=manifest.load_budget_seconds,
            python_backend=backend_of(manifest.name, manifest.format, variant).python,
            instances_per_gpu=serving.instances.per_card(model.server.gpus_per_replica),
            gpu_memory_mib=manifest.version(version).gpu_memory_mib,
        ),
        warmup_files=warmup_files(manifest, serving.warmup),
        warnings=_stall_warnings(manifest, name, serving, instances),
    )
