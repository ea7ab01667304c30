"""The registry of the local stack: what `make up` puts into it, and what `make registry` shows."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from serving.model_manifest import model_names
from serving.registry import rules
from serving.registry.errors import RegistryError
from serving.registry.location import Location
from serving.registry.lookup import read
from serving.registry.record import State
from serving.registry.store import Store
from serving.registry.view import CANARY, PREVIOUS, STABLE, RegisteredModel
from tests.documents import changed, document, without
from tests.registries import MODEL, mlflow, published, registered
from tools import registry as command
from tools.target import local_target


@pytest.fixture
def stack_file(tmp_path: Path) -> Path:
    return written(tmp_path / "Pulumi.local.yaml", document())


def written(file: Path, config: Any) -> Path:
    file.write_text(yaml.safe_dump({"config": config}, sort_keys=False))
    return file


@pytest.fixture(autouse=True)
def one_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of one model holds for all, and each costs MLflow's time."""
    if request.function is not test_a_new_registry_takes_over_what_the_stack_serves:
        monkeypatch.setattr(command, "model_names", lambda: [MODEL])


def filled(registry: Location, stack_file: Path) -> RegisteredModel:
    command.fill(registry, stack_file)
    return read(registry).model(MODEL)


def states(model: RegisteredModel) -> dict[int, State]:
    return {record.version: record.state for record in model.versions}


def test_a_new_registry_takes_over_what_the_stack_serves(registry: Location, stack_file: Path) -> None:
    model = filled(registry, stack_file)
    assert states(model) == {1: State.ACTIVE, 2: State.TESTING}
    assert model.aliases == {STABLE: 1, CANARY: 2}
    assert sorted(each.name for each in read(registry).models) == model_names()


def test_what_was_measured_is_known_too(registry: Location, stack_file: Path, tmp_path: Path) -> None:
    report = tmp_path / MODEL / "optimisation.json"
    report.parent.mkdir()
    report.write_text(json.dumps({"model": MODEL, "dataSet": {"name": "types"}, "versions": {"2": {"accuracy": 0.5}}}))
    command.fill(registry, stack_file, tmp_path)
    assert read(registry).model(MODEL).version(2).metrics.accuracy == 0.5


def test_a_second_time_nothing_changes_and_mlflow_is_not_asked(registry: Location, stack_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = filled(registry, stack_file)
    monkeypatch.setattr(command, "Store", lambda _: pytest.fail("MLflow was asked"))
    monkeypatch.setattr("serving.registry.lookup.Store", lambda _: pytest.fail("MLflow was asked"))
    assert filled(registry, stack_file) == first


def test_what_a_person_decided_stays(registry: Location, stack_file: Path) -> None:
    filled(registry, stack_file)
    Store(registry).take(MODEL, lambda model: rules.promote(model, 2))
    Store(registry).take(MODEL, lambda model: rules.archive(model, 1))
    model = filled(registry, stack_file)
    assert (states(model), model.aliases) == ({1: State.ARCHIVED, 2: State.ACTIVE}, {STABLE: 2})


def test_a_fill_that_was_interrupted_is_completed(registry: Location, stack_file: Path) -> None:
    filled(registry, stack_file)
    with mlflow(Store(registry)) as client:
        client.delete_registered_model_alias(MODEL, STABLE)
        client.delete_model_version(MODEL, "2")
    model = filled(registry, stack_file)
    assert (states(model), model.aliases) == ({1: State.ACTIVE, 2: State.TESTING}, {STABLE: 1, CANARY: 2})


def test_other_content_under_a_registered_number_is_refused_with_the_way_out(registry: Location, stack_file: Path) -> None:
    registered(Store(registry), published(2, artefact_sha256="f" * 64))
    with pytest.raises(RegistryError, match="'magika' version 2 is registered with artefact ffff") as refused:
        command.fill(registry, stack_file)
    assert "new version in model.yaml; this registry is the local stack's own and may be forgotten: rm " + str(registry.file) in refused.value.hint


def test_two_models_of_a_stack_may_serve_two_versions_of_one(registry: Location, tmp_path: Path) -> None:
    settings = document()["inference-platform:models"]["magika"]
    config = changed("models", {"old": {**settings, "tritonName": MODEL}, "new": {**settings, "tritonName": MODEL, "version": 2, "canary": None}})
    model = filled(registry, written(tmp_path / "stack.yaml", config))
    assert (states(model), model.aliases) == ({1: State.ACTIVE, 2: State.ACTIVE}, {STABLE: 2, PREVIOUS: 1})


def test_a_model_that_the_stack_does_not_serve_gets_its_first_version_as_stable(registry: Location, tmp_path: Path) -> None:
    config = changed("models", {"another": {"version": 1}})
    assert filled(registry, written(tmp_path / "stack.yaml", config)).aliases == {STABLE: 1}


def test_a_stack_that_asks_no_registry_has_none(tmp_path: Path) -> None:
    place = Location.of_file(tmp_path / "none" / "mlflow.db")
    command.fill(place, written(tmp_path / "stack.yaml", without("registry")))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("content", ["", "config:", "config: 1", "[]"])
def test_a_stack_file_that_is_none_is_left_to_the_stack(tmp_path: Path, content: str) -> None:
    file = tmp_path / "stack.yaml"
    file.write_text(content)
    command.fill(Location.of_file(tmp_path / "none.db"), file)


@pytest.mark.parametrize("models", [None, [], {"magika": None}, {"magika": {"version": 9, "canary": 2}}, {"magika": {"version": "1", "canary": {}}}])
def test_versions_that_cannot_be_are_left_to_the_stack(registry: Location, tmp_path: Path, models: Any) -> None:
    model = filled(registry, written(tmp_path / "stack.yaml", changed("models", models)))
    assert set(states(model)) == {1, 2}
    assert CANARY not in model.aliases


def test_the_registry_is_shown_with_its_place(registry: Location, stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.argv", ["registry"])
    assert command.main() == 0
    assert "no version is registered; run make up" in capsys.readouterr().out
    place = command.location_of(local_target("local"))
    assert place.file is not None
    assert registry.file is not None
    place.file.parent.mkdir(parents=True)
    place.file.write_bytes(registry.file.read_bytes())
    command.fill(place, stack_file)
    assert command.main() == 0
    printed = capsys.readouterr().out
    assert ["magika", "1", "ACTIVE", "stable"] in [line.split()[:4] for line in printed.splitlines()]
    assert f"{place}: .venv/bin/python -m serving.registry" in printed
