"""An object store and a volume that the cluster's pods reach, and in both a good repository beside some that are bad, each in its own way."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serving.repository.bucket import BucketStore
from serving.repository.checksums import CHECKSUMS, VersionRef, folder_checksums
from serving.repository.s3 import make_client
from serving.repository.store import publish
from serving.repository.volume import VolumeStore
from tests.e2e.in_cluster import SECRET, SECRET_NAME, object_store
from tests.e2e.kube import Manifest
from tests.e2e.platform import MODEL, NAMESPACE
from tools import models

BUCKET = "models"
GOOD, FIXED = "good", "fixed"
VERSION = VersionRef(MODEL, 1)
NETWORK, CODE = "model.onnx", "model.py"
# Twice what the server's container may have, written to: untouched pages cost nothing.
HUNGRY = "\n_kept = b'x' * (2 * 1024**3)\n"

CORRUPT = "corrupt"
# Published under the number of the version that model.yaml describes, with checksums that fit. The corrupt version is good as published, the same but
# for a comment: other bytes than the node's cache has, which would do in place of the damaged file.
SPOILT: dict[str, Callable[[Path], object]] = {
    "signature": lambda folder: _edit(folder / CODE, lambda text: text.replace('"content"', '"document"')),
    "refuses": lambda folder: os.truncate(folder / NETWORK, 1000),
    CORRUPT: lambda folder: _edit(folder / CODE, lambda text: text + "\n# A later edition.\n"),
    "memory": lambda folder: _edit(folder / CODE, lambda text: text + HUNGRY),
}
BAD = tuple(SPOILT)


# The model whose repositories lie in a volume.
IN_VOLUME = "refuses"
CLAIM = "model-volume"


@dataclass(frozen=True)
class ModelStore:
    """Where pods find it: in a store at `endpoint`, and on the node in `folder`."""

    endpoint: str
    folder: Path

    def repository(self, model: str, prefix: str) -> dict[str, object]:
        """The stack's key `models.<model>.repository` for one of the prefixes."""
        if model == IN_VOLUME:
            return {"kind": "volume", "claim": CLAIM, "path": prefix, "fetchSeconds": 5}
        return {
            "kind": "objectStore",
            "bucket": BUCKET,
            "prefix": prefix,
            "endpoint": self.endpoint,
            "secret": SECRET_NAME,
            "fetchSeconds": 5,
        }

    def manifests(self) -> list[Manifest]:
        """What people make themselves: the Secret with the store's credentials, a volume with its claim."""
        size, modes = {"storage": "1Gi"}, ["ReadOnlyMany"]
        claim = {"accessModes": modes, "storageClassName": "", "volumeName": CLAIM, "resources": {"requests": size}}
        volume = {"accessModes": modes, "storageClassName": "", "capacity": size, "hostPath": {"path": str(self.folder), "type": "Directory"}}
        return [
            SECRET,
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLAIM}, "spec": volume},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM, "namespace": NAMESPACE}, "spec": claim},
        ]


@contextmanager
def model_store(folder: Path) -> Iterator[ModelStore]:
    """Serve and fill the store."""
    with object_store() as endpoint:
        store = ModelStore(endpoint, folder)
        _fill(store)
        yield store


def _fill(store: ModelStore) -> None:
    folder = store.folder
    # The servers' user is not the one who made it.
    folder.chmod(0o755)
    client = make_client(store.endpoint)
    client.create_bucket(Bucket=BUCKET)
    models.main(["--to", str(folder / GOOD), MODEL])
    for prefix in (GOOD, FIXED, *SPOILT):
        source = folder / GOOD
        if prefix in SPOILT:
            source = folder / prefix
            shutil.copytree(folder / GOOD, source)
            version = VolumeStore(source).folder(VERSION)
            (version / CHECKSUMS).unlink()
            SPOILT[prefix](version)
            (version / CHECKSUMS).write_bytes(folder_checksums(VERSION, version).render())
        publish(VolumeStore(source), BucketStore(client, BUCKET, prefix), [VERSION], print)
    shutil.copytree(folder / GOOD, folder / FIXED)
    # What the store did to it afterwards.
    key = BucketStore(client, BUCKET, CORRUPT).key(VERSION, CODE)
    content = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    client.put_object(Bucket=BUCKET, Key=key, Body=b"X" + content[1:])


def _edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before, f"{path} has no such text any more"
    path.write_text(after, encoding="utf-8")
