"""The registry in MLflow: reading it, and carrying out what the rules decided.

MLflow is imported when it is needed, since that takes a second.
"""

import fcntl
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from serving.registry import rules
from serving.registry.errors import COMMAND, RegistryError
from serving.registry.location import Location
from serving.registry.record import PREFIX, VersionRecord, record_of, tags_of
from serving.registry.rules import Create, Describe, DropAlias, Plan, SetAlias, SetState
from serving.registry.view import PREVIOUS, RegisteredModel, RegistryView

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

VERSION_TAG, STATE_TAG = f"{PREFIX}version", f"{PREFIX}state"
# MLflow tries an unreachable server seven times with growing pauses, which is four minutes, and reports its use to its makers.
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}
PAGE = 500
# What MLflow's filter language takes between quotes.
MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Store:
    """A registry at `location`. Every method raises RegistryError, and no exception of MLflow's."""

    def __init__(self, location: Location) -> None:
        self.location = location

    def view(self, names: list[str] | None = None) -> RegistryView:
        """The models of these names (None: all) that have an entry of ours."""
        if self.location.file and not self.location.is_there:
            return RegistryView()
        with self._translated():
            found = [self._model(name, aliases) for name, aliases in self._registered(names)]
        return RegistryView(models=tuple(model for model in found if model.versions or model.unreadable))

    def take(self, name: str, decide: Callable[[RegisteredModel], Plan]) -> Plan:
        """Read the model, decide, change: as one step for a SQLite file, of which one process at a time takes one.

        MLflow's protocol has no transactions, so steps of two people at once may interleave on a server. An alias is moved by one request, so
        there is one stable version at any time; the one whose promotion was overtaken is told so.
        """
        if not MODEL_NAME.fullmatch(name):
            raise RegistryError(f"model name {name!r}", hint="letters, digits, '_', '-' and '.', as in serving/models/")
        with self._exclusive(), self._translated():
            self._make_database()
            plan = decide(self.view([name]).model(name))
            for change in plan.changes:
                self._apply(name, change)
            self._check(name, plan)
        return plan

    def _check(self, name: str, plan: Plan) -> None:
        """What was changed is what is there now."""
        wanted = {change.alias: change.version for change in plan.changes if isinstance(change, SetAlias)}
        if not wanted:
            return
        aliases = self.view([name]).model(name).aliases
        for alias, version in wanted.items():
            if alias != PREVIOUS and aliases.get(alias) != version:
                raise RegistryError(
                    f"model {name!r}: {alias} is version {aliases.get(alias)}, not {version}: somebody else moved it at the same moment",
                    hint=f"{COMMAND} list {name}, then decide anew",
                )

    def _apply(self, name: str, change: rules.Change) -> None:
        match change:
            case Create(record):
                self._create(name, record)
            case Describe(record):
                self._describe(name, record)
            case SetState(version, state):
                self._client.set_model_version_tag(name, self._entry(name, version), STATE_TAG, state.value)
            case SetAlias(alias, version):
                self._client.set_registered_model_alias(name, alias, self._entry(name, version))
            case DropAlias(alias):
                self._client.delete_registered_model_alias(name, alias)

    def _create(self, name: str, record: VersionRecord) -> None:
        """Of two that register one version at once the first in MLflow's count stays; the other takes its own entry back."""
        client = self._client
        if not client.search_registered_models(f"name='{name}'", max_results=1):
            try:
                client.create_registered_model(name)
            except self._mlflow_error as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
        made = client.create_model_version(name, record.source, tags=tags_of(record), await_creation_for=0)
        if int(self._entry(name, record.version)) != int(made.version):
            client.delete_model_version(name, str(made.version))
            rules.register(self._model(name, {}), record)

    def _describe(self, name: str, record: VersionRecord) -> None:
        """Only what differs: a state that somebody changed meanwhile is not set back."""
        entry = self._entry(name, record.version)
        before, after = dict(self._client.get_model_version(name, entry).tags), tags_of(record)
        ours = {key for key in before if key.startswith(PREFIX) and key not in record.other_tags}
        for key in sorted(after.keys() - {STATE_TAG}):
            if before.get(key) != after[key]:
                self._client.set_model_version_tag(name, entry, key, after[key])
        for key in sorted(ours - after.keys()):
            self._client.delete_model_version_tag(name, entry, key)

    def _entry(self, name: str, version: int) -> str:
        """MLflow's own number of a version."""
        return str(min(int(entry.version) for entry in self._entries(name) if entry.tags.get(VERSION_TAG) == str(version)))

    def _model(self, name: str, aliases: dict[str, str]) -> RegisteredModel:
        records: dict[int, VersionRecord] = {}
        unreadable = []
        for entry in sorted(self._entries(name), key=lambda entry: int(entry.version)):
            if not any(key.startswith(PREFIX) for key in entry.tags):
                continue  # somebody else's, in a registry that we share
            try:
                record = record_of(name, entry.tags, created=_time(name, entry), mlflow_version=int(entry.version))
            except RegistryError as error:
                unreadable.append(str(error))
            else:
                records.setdefault(record.version, record)
        numbers = {record.mlflow_version: version for version, record in records.items()}
        known = {alias: numbers[int(number)] for alias, number in aliases.items() if int(number) in numbers}
        return RegisteredModel(
            name=name, versions=tuple(records[version] for version in sorted(records)), aliases=known, unreadable=tuple(unreadable)
        )

    def _entries(self, name: str) -> "list[ModelVersion]":
        return list(_pages(partial(self._client.search_model_versions, f"name='{name}'", PAGE)))

    def _registered(self, names: list[str] | None) -> Iterator[tuple[str, dict[str, str]]]:
        """Name and aliases of the models of these names (None: of every one that can be ours)."""
        for words in [None] if names is None else [f"name='{name}'" for name in names if MODEL_NAME.fullmatch(name)]:
            for model in _pages(partial(self._client.search_registered_models, words, PAGE)):
                if MODEL_NAME.fullmatch(model.name):
                    yield model.name, dict(model.aliases)

    def _make_database(self) -> None:
        """A new SQLite file is complete or not there: MLflow makes its tables in many steps and takes none of them up again."""
        file = self.location.file
        if file is None or self.location.is_there:
            return
        new = file.with_name(f"{file.name}.partial")
        new.unlink(missing_ok=True)
        new.with_name(f"{new.name}-journal").unlink(missing_ok=True)
        Store(Location.of_file(new))._client.search_registered_models(max_results=1)  # noqa: SLF001  (its own class)
        new.rename(file)

    @cached_property
    def _client(self) -> "MlflowClient":
        client: MlflowClient = _mlflow().MlflowClient(tracking_uri=self.location.uri, registry_uri=self.location.uri)
        return client

    @property
    def _mlflow_error(self) -> type[Any]:
        error: type[Any] = _mlflow().exceptions.MlflowException
        return error

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One process at a time; the kernel frees the lock of one that dies. A server has none."""
        file = self.location.file
        if file is None:
            yield
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            handle = file.with_name(f"{file.name}.lock").open("w")
        except OSError as error:
            raise self._unreachable(error) from error
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """What MLflow and its database throw becomes one sentence; of what they warn about each other nobody here can do anything."""
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  (with MLflow, a second)

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except (self._mlflow_error, SQLAlchemyError, OSError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> RegistryError:
        first = (str(error).splitlines() or [type(error).__name__])[0].replace(self.location.uri, str(self.location))
        return RegistryError(
            f"registry {self.location} cannot be used: {first[:300]}",
            hint="is the address right, the server up, the file readable? Credentials of a server: MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
        )


def _time(name: str, entry: "ModelVersion") -> datetime:
    try:
        return datetime.fromtimestamp(entry.creation_timestamp / 1000, UTC)
    except (ValueError, OverflowError, OSError) as error:
        message = f"model {name!r}, entry {entry.version} in MLflow: creation time {entry.creation_timestamp}: {error}"
        raise RegistryError(message, hint="delete the entry in MLflow and register the version again") from None


def _mlflow() -> Any:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow  # noqa: PLC0415  (a second, and nobody who only asks the rules needs it)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # It logs with its stack what it also raises, which becomes a sentence here.
    logging.getLogger("mlflow").setLevel(logging.CRITICAL)
    return mlflow


def _pages(fetch: Callable[..., Any]) -> Iterator[Any]:
    token: str | None = None
    while True:
        page = fetch(page_token=token)
        yield from page
        token = page.token
        if not token:
            return
