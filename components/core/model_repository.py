"""Where a server's models come from, as a person says it, and the folder of a node that keeps them."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from components.core.object_store import BUCKET, FOLDER, FOLDER_MAX, OBJECT_NAME, ObjectStoreAccessSpec
from components.core.spec import Spec
from components.naming import content_hash, k8s_name

# A cache in one of these would fill, or be taken for, something else.
NODE_FOLDERS = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr")
FetchSeconds = Annotated[int, Field(ge=1, le=7200, description="Longest time the init step may take; added to what a rollout waits.")]


class ImageRepositorySpec(Spec):
    """In the serving image."""

    kind: Literal["image"] = "image"


class VolumeRepositorySpec(Spec):
    """In a volume that exists, as `python -m serving.repository publish` left it; mounted read-only, every checksum compared before the server starts."""

    kind: Literal["volume"]
    claim: Annotated[str, Field(pattern=OBJECT_NAME, description="PersistentVolumeClaim in the namespace of the models.")]
    path: Annotated[str, Field(pattern=FOLDER, max_length=FOLDER_MAX, description="Folder of the repository in the volume; empty: its root.")] = ""
    fetch_seconds: FetchSeconds = 300


class ObjectStoreRepositorySpec(ObjectStoreAccessSpec):
    """In an object store with the S3 API; an init step downloads what the server loads and compares every checksum."""

    kind: Literal["objectStore"]
    bucket: Annotated[str, Field(pattern=BUCKET)]
    prefix: Annotated[str, Field(pattern=FOLDER, max_length=FOLDER_MAX, description="Folder of the repository in the bucket; empty: its root.")] = ""
    fetch_seconds: FetchSeconds = 300


RepositorySpec = Annotated[ImageRepositorySpec | VolumeRepositorySpec | ObjectStoreRepositorySpec, Field(discriminator="kind")]


class ModelCacheSpec(Spec):
    """A folder of each node, best on NVMe, in which fetched model files stay for the next pod."""

    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$", description="Absolute path on the node; made where it is not there.")]
    size_gib: Annotated[int, Field(ge=1, le=65_536, description="What all files together may take; the least recently used ones make room.")]

    @model_validator(mode="after")
    def _path_is_no_system_folder(self) -> Self:
        if (top := self.path.split("/")[1]) in NODE_FOLDERS:
            raise ValueError(f"path {self.path!r} is below /{top}, which belongs to the node's system; name a folder of a data disk")
        return self


@dataclass(frozen=True, kw_only=True)
class NodeCache:
    """The cache of the nodes of `pool` (None: of nodes without one) for the models of a namespace.

    Volumes cannot change what they point to, so their names change with it.
    """

    pool: str | None
    spec: ModelCacheSpec

    @property
    def claim(self) -> str:
        """Name of the PersistentVolumeClaim, and of the DaemonSet that makes the folder."""
        pool = () if self.pool is None else (self.pool,)
        return k8s_name("model-cache", *pool, content_hash(f"{self.spec.path} {self.spec.size_gib}"))

    def volume(self, namespace: str) -> str:
        """Name of the PersistentVolume, which belongs to no namespace."""
        return k8s_name(namespace, self.claim)
