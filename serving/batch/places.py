"""From what a person writes to a place: `s3://bucket/prefix`, or the path of a directory."""

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
    if isinstance(places[0], DirectoryStorage) and not places[0].root.is_dir():
        raise BatchError(f"{source} is no directory", hint=f"name the directory with the inputs, or {SCHEME}bucket/prefix")
    one, other = (f"{str(storage).rstrip('/')}/" for storage in places)
    if one.startswith(other) or other.startswith(one):
        raise BatchError(f"input {source} and output {target} lie inside each other", hint="name an output beside the input")
    return places
