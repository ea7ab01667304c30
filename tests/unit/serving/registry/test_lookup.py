"""A registry is read without MLflow while its file is the same, and never says what it said before a change."""

import os
import shutil
from pathlib import Path

import pytest

from serving.registry import lookup, rules
from serving.registry.errors import RegistryError
from serving.registry.location import Location
from serving.registry.lookup import look_up, read
from serving.registry.record import State
from serving.registry.store import Store
from serving.registry.view import STABLE
from tests.registries import MODEL, copied, mlflow, record, registered


@pytest.fixture(scope="module")
def template(mlflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry of two versions, with its view beside it."""
    location = copied(mlflow_database, tmp_path_factory.mktemp("filled"))
    assert location.file is not None
    registered(Store(location), record(1), record(2))
    read(location)
    return location.file


@pytest.fixture
def filled(template: Path, tmp_path: Path) -> Location:
    location = copied(template, tmp_path)
    assert location.file is not None
    shutil.copy(lookup._place(template), lookup._place(location.file))
    return location


@pytest.fixture
def no_mlflow(filled: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test when MLflow is asked after the registry was filled, here or in another process."""
    monkeypatch.setattr(lookup, "Store", lambda _: pytest.fail("MLflow was asked"))
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("MLflow was asked"))


@pytest.mark.usefixtures("no_mlflow")
def test_an_unchanged_file_is_read_without_mlflow(filled: Location) -> None:
    assert [each.version for each in look_up(filled, [MODEL], 1).model(MODEL).versions] == [1, 2]
    assert read(filled) == look_up(filled, [MODEL], 1)


def test_a_change_by_anybody_is_seen_at_once(filled: Location) -> None:
    """Somebody else's client writes, which knows nothing of the view beside the file."""
    with mlflow(Store(filled)) as client:
        client.set_model_version_tag(MODEL, "1", "inference.state", "ACTIVE")
        client.set_registered_model_alias(MODEL, STABLE, "1")
    model = read(filled).model(MODEL)
    assert (model.version(1).state, model.aliases) == (State.ACTIVE, {STABLE: 1})


def test_another_process_reads_what_has_no_view_and_leaves_one(filled: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(filled).take(MODEL, lambda model: rules.promote(model, 2))
    said = look_up(filled, [MODEL], 120)
    assert said.model(MODEL).aliases == {STABLE: 2}
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("MLflow was asked"))
    assert look_up(filled, [MODEL], 1) == said


@pytest.mark.parametrize("content", ["", "{}", "[]", "{", '{"databaseSha256": "x", "view": {}}', "\udcff"])
def test_a_view_that_is_none_is_as_if_there_were_none(filled: Location, content: str) -> None:
    assert filled.file is not None
    lookup._place(filled.file).write_bytes(os.fsencode(content))
    assert [each.version for each in read(filled).model(MODEL).versions] == [1, 2]


@pytest.mark.usefixtures("no_mlflow")
def test_while_a_transaction_is_under_way_no_view_is_trusted(filled: Location) -> None:
    assert filled.file is not None
    filled.file.with_name("mlflow.db-journal").write_bytes(b"")
    with pytest.raises(pytest.fail.Exception, match="MLflow was asked"):
        read(filled)


@pytest.mark.usefixtures("no_mlflow")
def test_a_file_that_is_not_there_is_named_with_the_way_to_one(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"none.db does not exist") as refused:
        look_up(Location.of_file(tmp_path / "none.db"), [MODEL], 1)
    assert "make up" in refused.value.hint
    assert not (tmp_path / "none.db").exists()


def test_an_error_of_the_other_process_is_this_ones(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("no database")
    with pytest.raises(RegistryError, match=r"registry sqlite:///.*other.db cannot be used: .*not a database"):
        look_up(Location.of_file(tmp_path / "other.db"), [MODEL], 120)


def test_another_process_that_dies_is_an_error_too(filled: Location, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Store(filled).take(MODEL, lambda model: rules.promote(model, 2))
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(RegistryError, match="reading it ended with 1"):
        look_up(filled, [MODEL], 10)
