"""The registry in MLflow's SQLite database: what a step leaves there, alone, twice, and beside another one."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from serving.registry import rules
from serving.registry.errors import RegistryError
from serving.registry.location import Location
from serving.registry.record import DataSetSpec, MetricsSpec, State
from serving.registry.store import Store, _time
from serving.registry.view import PREVIOUS, STABLE, RegisteredModel
from tests.registries import MODEL, mlflow, record, registered
from tools.paths import REPO

FULL = record(
    2,
    metrics=MetricsSpec(accuracy=0.98, p99_ms=4.5, size_bytes=10),
    data_set=DataSetSpec(name="types", sha256="a" * 64, size=708),
    requires={"triton": ">=2.40"},
    other_tags={"owner": "team"},
)


@pytest.fixture
def store(registry: Location) -> Store:
    return Store(registry)


def model_in(store: Store) -> RegisteredModel:
    return store.view().model(MODEL)


def take(store: Store, step: Callable[[RegisteredModel, int], rules.Plan], version: int) -> rules.Plan:
    return store.take(MODEL, lambda model: step(model, version))


def test_a_registered_version_is_read_back_as_it_was_with_the_time_it_came(store: Store) -> None:
    registered(store, FULL)
    [read] = model_in(store).versions
    assert read.created is not None
    assert read.model_copy(update={"created": None, "mlflow_version": None}) == FULL


def test_versions_keep_their_own_numbers_whatever_mlflow_counts(store: Store) -> None:
    registered(store, record(7), record(3))
    take(store, rules.promote, 7)
    assert [(each.version, each.mlflow_version) for each in model_in(store).versions] == [(3, 2), (7, 1)]
    assert model_in(store).aliases == {STABLE: 7}


def test_registering_twice_makes_one_entry(store: Store) -> None:
    registered(store, FULL, FULL)
    assert len(store._entries(MODEL)) == 1


def test_what_is_no_longer_true_of_a_version_loses_its_tag(store: Store) -> None:
    registered(store, FULL, FULL.model_copy(update={"requires": {}, "other_tags": {}}))
    [read] = model_in(store).versions
    assert (read.requires, read.other_tags, read.metrics) == ({}, {"owner": "team"}, FULL.metrics)


def test_a_life_of_two_versions(store: Store) -> None:
    registered(store, record(1), record(2))
    take(store, rules.promote, 1)
    take(store, rules.canary, 2)
    take(store, rules.promote, 2)
    assert model_in(store).aliases == {STABLE: 2, PREVIOUS: 1}
    store.take(MODEL, rules.rollback)
    take(store, rules.archive, 2)
    assert model_in(store).aliases == {STABLE: 1}
    assert [each.state for each in model_in(store).versions] == [State.ACTIVE, State.ARCHIVED]


def test_a_refused_step_changes_nothing(store: Store) -> None:
    registered(store, record(1), record(2))
    take(store, rules.promote, 1)
    before = model_in(store)
    with pytest.raises(RegistryError, match="is stable"):
        take(store, rules.archive, 1)
    assert model_in(store) == before


def test_entries_and_models_of_others_are_left_out(store: Store) -> None:
    registered(store, record(1))
    with mlflow(store) as client:
        client.create_model_version(MODEL, "s3://elsewhere", tags={"owner": "x"})
        client.set_registered_model_alias(MODEL, "theirs", "2")
    assert [model.name for model in store.view().models] == [MODEL]
    assert [each.version for each in model_in(store).versions] == [1]
    assert model_in(store).aliases == {}


def test_an_entry_edited_into_nonsense_is_named_and_hides_no_other(store: Store) -> None:
    registered(store, record(1), record(2))
    with mlflow(store) as client:
        client.set_model_version_tag(MODEL, "2", "inference.state", "LIVE")
    assert [each.version for each in model_in(store).versions] == [1]
    [said] = model_in(store).unreadable
    assert "entry 2 in MLflow: tag inference.state = 'LIVE'" in said
    with pytest.raises(RegistryError, match=r"version 2 is not registered.*\n.*LIVE"):
        take(store, rules.promote, 2)


def test_promotions_at_once_leave_exactly_one_stable_version(store: Store) -> None:
    registered(store, *map(record, range(1, 4)))
    take(store, rules.promote, 1)
    # A process without threads, so that it may fork once it has paid for MLflow.
    program = f"""
import multiprocessing, sys
from serving.registry import rules
from serving.registry.location import Location
from serving.registry.store import Store, _mlflow
def promote(version):
    Store(Location.parse({store.location.uri!r})).take({MODEL!r}, lambda model: rules.promote(model, version))
_mlflow()
running = [multiprocessing.get_context("fork").Process(target=promote, args=(version,)) for version in (2, 3)]
for process in running:
    process.start()
for process in running:
    process.join()
sys.exit(str([process.exitcode for process in running]))
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=REPO, timeout=120, check=False, capture_output=True, text=True)
    assert ran.stderr.splitlines()[-1:] == ["[0, 0]"]
    now = model_in(store)
    assert [each.state for each in now.versions] == [State.ACTIVE] * 3
    # One after the other: whoever came last knows who was stable before.
    assert {now.aliases[STABLE], now.aliases[PREVIOUS]} == {2, 3}


def test_a_promotion_that_somebody_overtook_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server without transactions allows: another promotion between our last change and our look at it."""
    registered(store, record(1), record(2))
    apply = store._apply

    def overtaken(name: str, change: rules.Change) -> None:
        apply(name, change)
        if isinstance(change, rules.SetAlias) and change.alias == STABLE:
            apply(name, rules.SetAlias(STABLE, 2))

    monkeypatch.setattr(store, "_apply", overtaken)
    with pytest.raises(RegistryError, match="stable is version 2, not 1: somebody else moved it"):
        take(store, rules.promote, 1)
    assert model_in(store).aliases == {STABLE: 2}


def test_of_two_that_register_one_version_at_once_the_first_stays(store: Store) -> None:
    registered(store, record(1))
    store._create(MODEL, record(1))
    assert len(store._entries(MODEL)) == 1
    with pytest.raises(RegistryError, match="is registered with artefact"):
        store._create(MODEL, record(1, artefact_sha256="f" * 64))
    assert len(store._entries(MODEL)) == 1


@pytest.mark.parametrize("name", ["", "it's", "a' OR name LIKE '%", "ма́гика", "a/b"])
def test_a_name_that_is_none_reaches_no_query(store: Store, name: str) -> None:
    with pytest.raises(RegistryError, match="model name"):
        store.take(name, partial(rules.promote, version=1))


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_no_registry_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other.db"
    file.write_bytes(content)
    if content:
        with pytest.raises(RegistryError, match=r"registry sqlite:///.*other.db cannot be used: "):
            Store(Location.of_file(file)).view()
    else:
        assert Store(Location.of_file(file)).view().models == ()


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RegistryError, match="cannot be used"):
        registered(Store(Location.of_file(tmp_path / "file" / "registry.db")), record(1))


def test_a_database_that_was_killed_while_it_was_made_is_made_anew(tmp_path: Path, registry: Location) -> None:
    file = tmp_path / "new" / "mlflow.db"
    file.parent.mkdir()
    assert registry.file is not None
    for name in ("mlflow.db.partial", "mlflow.db.partial-journal"):
        (file.parent / name).write_bytes(registry.file.read_bytes()[:5000])
    assert model_in(registered(Store(Location.of_file(file)), record(1))).version(1).state is State.TESTING
    assert sorted(path.name for path in file.parent.iterdir()) == ["mlflow.db", "mlflow.db.lock"]


def test_a_registry_that_is_not_there_is_empty_and_reading_makes_none(tmp_path: Path) -> None:
    assert Store(Location.of_file(tmp_path / "none.db")).view().models == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("milliseconds", [999_999_999_999_999_999, 10**300])
def test_an_entry_of_a_time_that_is_none_is_named(milliseconds: int) -> None:
    entry: Any = SimpleNamespace(version="7", creation_timestamp=milliseconds)
    with pytest.raises(RegistryError, match=f"entry 7 in MLflow: creation time {milliseconds}"):
        _time(MODEL, entry)
