"""Models from a volume or an object store, as parts of a pod: an init step that fetches or compares, and the versions laid over the image's own."""

import math
from dataclasses import dataclass
from typing import Any

from components.core.model_repository import ImageRepositorySpec, ObjectStoreRepositorySpec, VolumeRepositorySpec
from components.core.object_store import credential_variables
from components.inference.spec import LoadedModel
from serving.contract import REPOSITORY_PATH

INIT_CONTAINER = "repository"
VOLUME = "repository"
CACHE_VOLUME = "model-cache"
# Where the init step sees the repository and the node's cache; the server sees its versions alone, below REPOSITORY_PATH.
MOUNT_PATH = "/repository"
CACHE_PATH = "/cache"
MIB = 1024 * 1024
# The model's code beside its files, and a transformed file that is larger than its source.
SIZE_FACTOR, SIZE_MARGIN_MIB = 1.1, 16
# Measured with boto3 over 3 MB: 75 MiB resident; files pass through in pieces of 1 MiB. Hashing and TLS take about a core.
MEMORY_MIB = 256
CPU_REQUEST, CPU_LIMIT = "100m", "2"


@dataclass(frozen=True, kw_only=True)
class CacheUse:
    """The node-local cache of the pods: the claim that stands for it, and its size."""

    claim: str
    size_gib: int


@dataclass(frozen=True, kw_only=True)
class RepositoryUse:
    """Where a server's models come from, and the cache of its nodes."""

    spec: ImageRepositorySpec | VolumeRepositorySpec | ObjectStoreRepositorySpec
    cache: CacheUse | None = None

    @property
    def needs_init(self) -> bool:
        return not isinstance(self.spec, ImageRepositorySpec)

    @property
    def fetch_seconds(self) -> int:
        """What the init step adds to the start of a pod, at most."""
        return 0 if isinstance(self.spec, ImageRepositorySpec) else self.spec.fetch_seconds

    @property
    def account_annotations(self) -> dict[str, str]:
        return dict(self.spec.service_account_annotations) if isinstance(self.spec, ObjectStoreRepositorySpec) else {}


IN_IMAGE = RepositoryUse(spec=ImageRepositorySpec())


def volume_mib(models: tuple[LoadedModel, ...]) -> int:
    """Size of the volume that holds the models' files, in MiB."""
    return math.ceil(SIZE_FACTOR * sum(model.size_bytes for model in models) / MIB) + SIZE_MARGIN_MIB


def build_init_containers(use: RepositoryUse, models: tuple[LoadedModel, ...], image: Any) -> list[dict[str, Any]]:
    """The init step: none for models in the image. A wrong file ends it, so the rollout fails and the pods that serve stay.

    It is told what each version must be: a store that only agrees with itself is refused.
    """
    spec = use.spec
    if isinstance(spec, ImageRepositorySpec):
        return []
    versions = [f"{model.name}/{model.version}@sha256:{model.files_sha256}" for model in models]
    requests = {"cpu": CPU_REQUEST, "memory": f"{MEMORY_MIB}Mi"}
    if isinstance(spec, VolumeRepositorySpec):
        arguments = ["verify", MOUNT_PATH, *versions]
        mounts = [_sub_path({"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}, spec.path)]
    else:
        arguments = _fetch_arguments(use, spec, models, versions)
        mounts = [{"name": VOLUME, "mountPath": MOUNT_PATH}]
        # So that the pod comes to a node with room for the files.
        requests["ephemeral-storage"] = f"{volume_mib(models)}Mi"
        if use.cache is not None:
            mounts.append({"name": CACHE_VOLUME, "mountPath": CACHE_PATH})
    return [
        {
            "name": INIT_CONTAINER,
            "image": image,
            "args": ["serving.repository", *arguments],
            "env": [] if isinstance(spec, VolumeRepositorySpec) else credential_variables(spec.secret),
            "resources": {"requests": requests, "limits": {"cpu": CPU_LIMIT, "memory": f"{MEMORY_MIB}Mi"}},
            "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
            # The sentence about what is wrong shows in the pod's status, and so in what `pulumi up` says.
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": mounts,
        }
    ]


def repository_volumes(use: RepositoryUse, models: tuple[LoadedModel, ...]) -> list[dict[str, Any]]:
    """Volumes of the pod that hold the models and the cache."""
    if isinstance(use.spec, ImageRepositorySpec):
        return []
    if isinstance(use.spec, VolumeRepositorySpec):
        return [{"name": VOLUME, "persistentVolumeClaim": {"claimName": use.spec.claim, "readOnly": True}}]
    volumes: list[dict[str, Any]] = [{"name": VOLUME, "emptyDir": {"sizeLimit": f"{volume_mib(models)}Mi"}}]
    return volumes if use.cache is None else [*volumes, {"name": CACHE_VOLUME, "persistentVolumeClaim": {"claimName": use.cache.claim}}]


def repository_mounts(use: RepositoryUse, models: tuple[LoadedModel, ...]) -> list[dict[str, Any]]:
    """The version directories as the server sees them: beside each model's config.pbtxt, which another mount lays there."""
    if isinstance(use.spec, ImageRepositorySpec):
        return []
    root = use.spec.path if isinstance(use.spec, VolumeRepositorySpec) else ""
    return [
        _sub_path(
            {"name": VOLUME, "mountPath": f"{REPOSITORY_PATH}/{model.name}/{model.version}", "readOnly": True},
            f"{root}/{model.name}/{model.version}".lstrip("/"),
        )
        for model in models
    ]


def _fetch_arguments(use: RepositoryUse, spec: ObjectStoreRepositorySpec, models: tuple[LoadedModel, ...], versions: list[str]) -> list[str]:
    options = ["--to", MOUNT_PATH, "--limit-mib", str(volume_mib(models))]
    if spec.endpoint is not None:
        options += ["--endpoint", spec.endpoint]
    if spec.region is not None:
        options += ["--region", spec.region]
    if use.cache is not None:
        options += ["--cache", CACHE_PATH, "--cache-gib", str(use.cache.size_gib)]
    return ["fetch", f"s3://{spec.bucket}/{spec.prefix}".rstrip("/"), *options, *versions]


def _sub_path(mount: dict[str, Any], path: str) -> dict[str, Any]:
    return {**mount, "subPath": path} if path else mount
