"""Reading a registry without paying for MLflow, and within a time limit.

Importing MLflow and opening its database takes two seconds, which no edit of a weight should cost. So a view of a SQLite registry is kept beside its
file, together with the hash of the file it was read from: as long as the file is the same, so is what it says, whoever writes to it.
"""

import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from components.core.spec import Spec
from serving.registry.errors import COMMAND, RegistryError
from serving.registry.location import REGISTRY_VARIABLE, Location
from serving.registry.store import Store
from serving.registry.view import RegistryView

ROOT = Path(__file__).resolve().parent.parent.parent


class KeptView(Spec):
    """A view and the hash of the database it was read from."""

    database_sha256: str
    view: RegistryView


def read(location: Location, names: list[str] | None = None) -> RegistryView:
    """What the registry says about the models `names` (None: all). Raises RegistryError."""
    if location.file is None:
        return Store(location).view(names)
    before = _hash(location.file)
    if (kept := _kept(location.file, before)) is not None:
        return kept
    view = Store(location).view()
    if before and before == _hash(location.file):
        _keep(location.file, KeptView(database_sha256=before, view=view))
    return view


def look_up(location: Location, names: list[str], timeout_seconds: float) -> RegistryView:
    """The same in another process, which is ended when the time is over: MLflow has no limit of its own that holds for everything it does.

    Raises RegistryError when the registry is not there or does not answer in time.
    """
    if (file := location.file) is not None:
        if not location.is_there:
            raise RegistryError(f"registry {location} does not exist", hint=f"make up makes it; without: {COMMAND} register")
        if (kept := _kept(file, _hash(file))) is not None:
            return kept
    try:
        done = subprocess.run(
            [sys.executable, "-m", "serving.registry.lookup", *names],
            cwd=ROOT,
            # Not as an argument, which every user of the machine can read: the URI may hold a password.
            env={**os.environ, REGISTRY_VARIABLE: location.uri},
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RegistryError(
            f"registry {location} did not answer within {timeout_seconds:g} s", hint="is the server up? registry.timeoutSeconds is the limit"
        ) from None
    return _answer(location, done)


def _answer(location: Location, done: "subprocess.CompletedProcess[str]") -> RegistryView:
    """What the other process said."""
    with suppress(ValueError, IndexError):
        answer = json.loads(done.stdout.splitlines()[-1])
        if "error" in answer:
            raise RegistryError(*answer["error"])
        return RegistryView.model_validate_json(json.dumps(answer["view"]))
    said = (done.stderr.strip().splitlines() or ["nothing"])[-1].replace(location.uri, str(location))
    raise RegistryError(f"registry {location}: reading it ended with {done.returncode} and said {said[:300]}", hint=f"{COMMAND} list")


def _hash(file: Path) -> str:
    """Of the database and its write-ahead log; empty while a transaction is under way or where there is no file."""
    digest = hashlib.sha256()
    try:
        if file.with_name(f"{file.name}-journal").exists():
            return ""
        digest.update(file.read_bytes())
        log = file.with_name(f"{file.name}-wal")
        digest.update(log.read_bytes() if log.exists() else b"")
    except OSError:
        return ""
    return digest.hexdigest()


def _kept(file: Path, database: str) -> RegistryView | None:
    try:
        kept = KeptView.model_validate_json(_place(file).read_bytes())
    except (OSError, ValidationError):
        return None
    return kept.view if database and kept.database_sha256 == database else None


def _keep(file: Path, view: KeptView) -> None:
    """Whole or not at all; a folder that may not be written to costs time, nothing else."""
    partial = _place(file).with_name(f".{_place(file).name}.{os.getpid()}")
    with suppress(OSError):
        partial.write_text(view.model_dump_json(by_alias=True), encoding="utf-8")
        partial.replace(_place(file))


def _place(file: Path) -> Path:
    return file.with_name(f"{file.name}.view.json")


def main(names: list[str]) -> int:
    """Print one line of JSON: the view, or message and way out of an error."""
    try:
        answer: dict[str, object] = {
            "view": read(Location.parse(os.environ[REGISTRY_VARIABLE]), names or None).model_dump(mode="json", by_alias=True)
        }
    except RegistryError as error:
        answer = {"error": [error.message, error.hint]}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
