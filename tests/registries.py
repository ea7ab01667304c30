"""Registries for tests. Making MLflow's database takes seconds, so it is made once and copied."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from serving.model_manifest import model_manifest
from serving.registry import rules
from serving.registry.artefact import record_of_manifest
from serving.registry.location import Location
from serving.registry.record import VersionRecord
from serving.registry.store import Store
from serving.registry.view import RegisteredModel, RegistryView

MODEL = "magika"


def record(version: int = 1, **fields) -> VersionRecord:
    """A version of MODEL, TESTING unless said otherwise."""
    return VersionRecord(**{"model": MODEL, "version": version, "artefact_sha256": f"{version:064x}", "source": f"s3://models/{version}", **fields})


def published(version: int, **fields) -> VersionRecord:
    """The record of a version as model.yaml has it."""
    return _published(version).model_copy(update=fields)


@cache
def _published(version: int) -> VersionRecord:
    return record_of_manifest(model_manifest(MODEL), version)


def view_of(*records: VersionRecord, **aliases: int) -> RegistryView:
    return RegistryView(models=(RegisteredModel(name=MODEL, versions=records, aliases=aliases),))


def registered(store: Store, *records: VersionRecord) -> Store:
    for each in records:
        store.take(each.model, partial(_register, record=each))
    return store


def _register(model: RegisteredModel, record: VersionRecord) -> rules.Plan:
    return rules.register(model, record)


@contextmanager
def mlflow(store: Store) -> Iterator[Any]:
    """MLflow's client, for what the platform itself never does."""
    with store._translated():
        yield store._client


def empty_database(folder: Path) -> Path:
    """A database of MLflow's with one model of somebody else in it."""
    file = folder / "mlflow.db"
    with mlflow(Store(Location.of_file(file))) as client:
        client.create_registered_model("somebody-elses")
    return file


def copied(template: Path, folder: Path) -> Location:
    return Location.of_file(Path(shutil.copy(template, folder / "mlflow.db")))
