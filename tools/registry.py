"""`make registry`: the versions of the local stack's models and how far each may go. `make up` fills this registry."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml

from serving.model_manifest import ModelManifest, model_manifest, model_names
from serving.registry import rules
from serving.registry.artefact import record_of_manifest
from serving.registry.errors import COMMAND, RegistryError
from serving.registry.location import Location
from serving.registry.lookup import read
from serving.registry.record import VersionRecord
from serving.registry.report import load_report, with_report
from serving.registry.rules import Plan
from serving.registry.store import Store
from serving.registry.table import show, version_table
from serving.registry.view import STABLE, RegisteredModel
from stacks.loader import PROJECT
from tools.cli import run_main
from tools.paths import REPO
from tools.target import Target, command_line, target_of

Subject = TypeVar("Subject")
# Where the optimisation pipeline leaves its report of each model.
REPORTS = REPO / "docs" / "models"
STACK_FILE = REPO / "stacks" / "Pulumi.local.yaml"


def location_of(target: Target) -> Location:
    """Beside Pulumi's state of the target, with which it comes and goes."""
    return Location.of_file(target.registry)


def fill(location: Location, stack_file: Path = STACK_FILE, reports: Path = REPORTS) -> None:
    """Register what the serving image holds, with what `reports` say about it.

    A model without a stable version gets the versions that the stack file names; all else stays as a person decided.
    Nothing for a stack file that asks no registry. Raises RegistryError for a published version whose content has changed.
    """
    settings = _settings(stack_file)
    if f"{PROJECT}:registry" not in settings:
        return
    try:
        _register_all(location, settings, reports)
    except RegistryError as error:
        raise RegistryError(
            error.message, hint=f"{error.hint}; this registry is the local stack's own and may be forgotten: rm {location.file}"
        ) from error
    # A preview shall not be the first to pay for MLflow.
    read(location)


def _register_all(location: Location, settings: dict[str, Any], reports: Path) -> None:
    before = read(location)
    for name in model_names():
        manifest, known = model_manifest(name), before.model(name)
        for record in _records(manifest, reports):
            if rules.register(known, record).changes:
                Store(location).take(name, partial(_decide, rule=rules.register, subject=record))
        if STABLE not in known.aliases:
            for model in _models(settings, name) or [{"version": min(manifest.version_numbers)}]:
                _adopt(Store(location), name, model)


def _records(manifest: ModelManifest, reports: Path) -> list[VersionRecord]:
    """The versions of a model as published, with the committed measurements of them."""
    records = [record_of_manifest(manifest, number) for number in sorted(manifest.version_numbers)]
    file = reports / manifest.name / "optimisation.json"
    if not file.exists():
        return records
    report = load_report(file)
    return [with_report(record, report) for record in records]


def _decide(model: RegisteredModel, rule: Callable[[RegisteredModel, Subject], Plan], subject: Subject) -> Plan:
    return rule(model, subject)


def _adopt(store: Store, name: str, model: dict[str, Any]) -> None:
    """What the stack serves becomes stable and canary. Versions that were never published are left to the stack's own rules."""
    published = model_manifest(name).version_numbers
    canary = model["canary"].get("version") if isinstance(model.get("canary"), dict) else None
    for rule, version in ((rules.promote, model.get("version")), (rules.canary, canary)):
        if version in published:
            store.take(name, partial(_decide, rule=rule, subject=version))


def _settings(stack_file: Path) -> dict[str, Any]:
    """The keys of the stack file; what is wrong with them is said by the stack itself."""
    content = yaml.safe_load(stack_file.read_text(encoding="utf-8"))
    settings = content.get("config") if isinstance(content, dict) else None
    return settings if isinstance(settings, dict) else {}


def _models(settings: dict[str, Any], triton_name: str) -> list[dict[str, Any]]:
    """What the stack says about the models that are `triton_name` in the repository."""
    models = settings.get(f"{PROJECT}:models")
    named = models.items() if isinstance(models, dict) else ()
    return [model for name, model in named if isinstance(model, dict) and model.get("tritonName", name) == triton_name]


def main() -> int:
    location = location_of(target_of(command_line(__doc__).parse_args()))
    view = read(location)
    show(version_table(view.models))
    print(f"{location}: {COMMAND} --help says what can be done with it" if view.models else "no version is registered; run make up")
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
