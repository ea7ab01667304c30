"""Versions of the models and how far each may go: `python -m serving.registry <command>`."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from components.core.command_line import CommandLine, whole_number
from components.errors import run_main
from serving.model_manifest import model_manifest, model_names
from serving.registry import rules
from serving.registry.artefact import record_of_manifest
from serving.registry.errors import RegistryError
from serving.registry.location import ALLOWED, REGISTRY_VARIABLE, Location
from serving.registry.lookup import read
from serving.registry.record import VersionRecord
from serving.registry.report import load_report, with_report
from serving.registry.rules import Plan
from serving.registry.store import Store
from serving.registry.table import comparison_table, differences, show, version_table
from serving.registry.view import RegisteredModel

Decision = Callable[[RegisteredModel, int], Plan]
# Commands that move one version.
STEPS: dict[str, tuple[Decision, str]] = {
    "canary": (rules.canary, "mark the version that is tried beside the stable one"),
    "promote": (rules.promote, "TESTING -> ACTIVE, alias stable; what was stable becomes previous"),
    "archive": (rules.archive, "ACTIVE or TESTING -> ARCHIVED: no traffic"),
    "restore": (rules.restore, "ARCHIVED -> TESTING"),
}


def location_of(arguments: argparse.Namespace) -> Location:
    """`--uri`, else $INFERENCE_PLATFORM_REGISTRY; RegistryError where neither names a registry."""
    said, text = ("--uri", arguments.uri) if arguments.uri is not None else (REGISTRY_VARIABLE, os.environ.get(REGISTRY_VARIABLE))
    if text is None:
        raise RegistryError("no registry is named", hint=f'--uri {ALLOWED}; for the local stack: eval "$(make env)"')
    try:
        return Location.parse(text)
    except ValueError as error:
        raise RegistryError(f"{said} {error}", hint='for the local stack: eval "$(make env)"') from None


def run_list(arguments: argparse.Namespace) -> int:
    view = read(location_of(arguments), arguments.models or None)
    models = [model for model in view.models if not arguments.models or model.name in arguments.models]
    if arguments.json:
        print(json.dumps([model.model_dump(mode="json", by_alias=True) for model in models], indent=2))
    else:
        show(version_table(models))
    unreadable = [sentence for model in models for sentence in model.unreadable]
    for sentence in unreadable:
        print(f"error: {sentence}", file=sys.stderr)
    return 1 if unreadable else 0


def run_show(arguments: argparse.Namespace) -> int:
    model = read(location_of(arguments), [arguments.model]).model(arguments.model)
    record = model.version(arguments.version)
    facts = {**record.model_dump(mode="json", by_alias=True, exclude_none=True), "aliases": model.aliases_of(record.version)}
    if arguments.json:
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(f"{name}: {value if isinstance(value, str | int) else json.dumps(value)}" for name, value in facts.items()))
    return 0


def run_compare(arguments: argparse.Namespace) -> int:
    model = read(location_of(arguments), [arguments.model]).model(arguments.model)
    first, second = model.version(arguments.first), model.version(arguments.second)
    if arguments.json:
        print(json.dumps([each.model_dump(by_alias=True) for each in differences(first, second)], indent=2))
    else:
        show(comparison_table(first, second))
    return 0


def run_register(arguments: argparse.Namespace) -> int:
    report = None if arguments.report is None else load_report(arguments.report)
    if report is not None and arguments.model is None:
        raise RegistryError("--report without a model", hint=f"register {report.model} --report {arguments.report}")
    done = []
    for name in [arguments.model] if arguments.model else model_names():
        manifest = model_manifest(name)
        for number in manifest.version_numbers if arguments.version is None else (arguments.version,):
            record = record_of_manifest(manifest, number, source=arguments.source)
            record = record if report is None else with_report(record, report)
            done.append(Store(location_of(arguments)).take(name, partial(_register, record=record)))
    return _said(arguments, done)


def _register(model: RegisteredModel, record: VersionRecord) -> Plan:
    return rules.register(model, record)


def run_step(arguments: argparse.Namespace) -> int:
    decide = STEPS[arguments.command][0]
    return _said(arguments, [Store(location_of(arguments)).take(arguments.model, lambda model: decide(model, arguments.version))])


def run_rollback(arguments: argparse.Namespace) -> int:
    return _said(arguments, [Store(location_of(arguments)).take(arguments.model, rules.rollback)])


def _said(arguments: argparse.Namespace, plans: list[Plan]) -> int:
    # Whoever asks next, a preview first of all, shall not pay for MLflow.
    read(location_of(arguments))
    if arguments.json:
        print(json.dumps([{"said": plan.said, "changed": bool(plan.changes)} for plan in plans], indent=2))
    else:
        print("\n".join(plan.said for plan in plans))
    return 0


def parser() -> argparse.ArgumentParser:
    root = CommandLine(prog="python -m serving.registry", description=__doc__)
    root.add_argument("--uri", help=f"{ALLOWED}; default ${REGISTRY_VARIABLE}")
    commands = root.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, run: Callable[[argparse.Namespace], int], words: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=words, description=words)
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", help="for programs")
        return added

    register = command("register", run_register, "make versions known as model.yaml says: one, those of a model, or all")
    register.add_argument("model", nargs="?")
    register.add_argument("version", nargs="?", type=whole_number)
    register.add_argument("--report", type=Path, help="JSON of an evaluation: data set and metrics per version")
    register.add_argument("--source", help="URI of the version's files, where it is not the one in model.yaml")
    command("list", run_list, "a line per version").add_argument("models", nargs="*")
    for name, words in (("show", "everything about a version"), *((step, text) for step, (_, text) in STEPS.items())):
        added = command(name, run_show if name == "show" else run_step, words)
        added.add_argument("model")
        added.add_argument("version", type=whole_number)
    compare = command("compare", run_compare, "the metrics of two versions side by side")
    compare.add_argument("model")
    compare.add_argument("first", type=whole_number)
    compare.add_argument("second", type=whole_number)
    command("rollback", run_rollback, "stable is what was stable before").add_argument("model")
    return root


def main(words: list[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    return run_main(lambda: int(arguments.run(arguments)))


if __name__ == "__main__":
    sys.exit(main())
