"""From what a person writes to a place: `s3://bucket/prefix`, or the path of a directory."""

import os
from collections.abc import Sequence
from pathlib import Path

from serving.batch.directory import DirectoryStorage
from serving.batch.errors import BatchError
from serving.batch.storage import SCHEME, Storage


def place(text: str, endpoint: str | None = None) -> Storage:
    """The storage behind `text`; BatchError when it can be none."""
    if not text.startswith(SCHEME):
        if "://" in text:
            raise BatchError(f"{text!r} is neither a directory nor {SCHEME}", hint=f"name a directory or {SCHEME}bucket/prefix")
        return DirectoryStorage(Path(text).absolute())
    bucket, _, prefix = text.removeprefix(SCHEME).partition("/")
    if not bucket:
        raise BatchError(f"{text!r} names no bucket", hint=f"write {SCHEME}bucket/prefix")
    from serving.batch.objects import ObjectStorage, connect  # noqa: PLC0415  (a directory needs no boto3)

    prefix = prefix.strip("/")
    return ObjectStorage(connect(endpoint), bucket, f"{prefix}/" if prefix else "")


def input_and_output(source: str, target: str, endpoint: str | None = None) -> tuple[Storage, Storage]:
    """Both places. BatchError for a source directory that is not there, and for places inside each other: answers would be taken for inputs."""
    places = place(source, endpoint), place(target, endpoint)
    if isinstance(places[0], DirectoryStorage) and not os.path.isdir(places[0].root):  # noqa: PTH112  (Path.is_dir raises for a name too long)
        raise BatchError(f"{source} is no directory", hint=f"name the directory with the inputs, or {SCHEME}bucket/prefix")
    one, other = (_inside(storage) for storage in places)
    if one.startswith(other) or other.startswith(one):
        raise BatchError(f"input {source} and output {target} lie inside each other", hint="name an output beside the input")
    return places


def file_place(text: str, endpoint: str | None, beside: Sequence[Storage]) -> tuple[Storage, str]:
    """The storage and the name in it of the file `text`. BatchError when it names none, or lies in one of the places it is to be `beside`."""
    folder, slash, name = text.rpartition("/")
    if not name or (text.startswith(SCHEME) and len(folder) <= len(SCHEME)):
        raise BatchError(f"{text!r} names no file", hint=f"name a file, or {SCHEME}bucket/key")
    storage = place(folder or slash or ".", endpoint)
    if isinstance(storage, DirectoryStorage) and os.path.isdir(storage.root / name):  # noqa: PTH112  (as above)
        raise BatchError(f"{text} is a directory", hint="name a file in it")
    for other in beside:
        if _inside(storage).startswith(_inside(other)):
            raise BatchError(f"{text} lies inside {other}, among what is read there", hint="name a file beside it")
    return storage, name


def _inside(storage: Storage) -> str:
    """What every path inside begins with; links and `..` are followed, so that a place has one name."""
    text = os.path.realpath(storage.root) if isinstance(storage, DirectoryStorage) else str(storage)
    return f"{text.rstrip('/')}/"
