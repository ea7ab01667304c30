"""An object store that the cluster's pods reach, and in it a good repository beside four that are bad, each in its own way."""

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
from tests.e2e.in_cluster import SECRET_NAME, object_store
from tests.e2e.platform import MODEL
from tools import models

BUCKET = "models"
GOOD, FIXED = "good", "fixed"
VERSION = VersionRef(MODEL, 1)
NETWORK, CODE = "model.onnx", "model.py"
# Twice what the server's container may have, written to: untouched pages cost nothing.
HUNGRY = "\n_kept = b'x' * (2 * 1024**3)\n"

# What a publisher got wrong; the checksums say so too, since they were made of it.
SPOILT: dict[str, Callable[[Path], object]] = {
    "signature": lambda folder: _edit(folder / CODE, lambda text: text.replace('"content"', '"document"')),
    "refuses": lambda folder: os.truncate(folder / NETWORK, 1000),
    "memory": lambda folder: _edit(folder / CODE, lambda text: text + HUNGRY),
}
# What the store did to a good version afterwards.
CORRUPT = "corrupt"
BAD = (CORRUPT, *SPOILT)


@dataclass(frozen=True)
class ModelStore:
    """Where pods find it; `repository` is a model's stack key for one of the prefixes."""

    endpoint: str

    def repository(self, prefix: str) -> dict[str, object]:
        return {
            "kind": "objectStore",
            "bucket": BUCKET,
            "prefix": prefix,
            "endpoint": self.endpoint,
            "secret": SECRET_NAME,
            "fetchSeconds": 10,
        }


@contextmanager
def model_store(folder: Path) -> Iterator[ModelStore]:
    """Serve and fill the store."""
    with object_store() as endpoint:
        store = ModelStore(endpoint)
        _fill(store, folder)
        yield store


def _fill(store: ModelStore, folder: Path) -> None:
    client = make_client(store.endpoint)
    client.create_bucket(Bucket=BUCKET)
    models.main(["--to", str(folder / GOOD), MODEL])
    for prefix in (GOOD, FIXED, CORRUPT, *SPOILT):
        source = folder / GOOD
        if prefix in SPOILT:
            source = folder / prefix
            shutil.copytree(folder / GOOD, source)
            version = VolumeStore(source).folder(VERSION)
            (version / CHECKSUMS).unlink()
            SPOILT[prefix](version)
            (version / CHECKSUMS).write_bytes(folder_checksums(VERSION, version).render())
        publish(VolumeStore(source), BucketStore(client, BUCKET, prefix), [VERSION], print)
    key = BucketStore(client, BUCKET, CORRUPT).key(VERSION, NETWORK)
    content = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    client.put_object(Bucket=BUCKET, Key=key, Body=b"X" + content[1:])


def _edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before, f"{path} has no such text any more"
    path.write_text(after, encoding="utf-8")
