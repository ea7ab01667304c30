"""Habits of the Pulumi program that a reader may rely on."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.sources import functions, imported_names, python_files, resolved, tree

PROGRAM = ("components", "stacks", "serving", "loadtests", "__main__.py")
CONFIG_READERS = ("pulumi.Config", "pulumi.runtime.config", "pulumi.config")
RESOURCE_MODULES = re.compile(r"(pulumi_\w+|components)\.")


def used_names(path: Path) -> set[str]:
    """Full dotted names of everything a file imports or reaches through an import."""
    names = imported_names(path)
    attributes = {resolved(node, names) for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    return set(names.values()) | attributes


def reads_config(path: Path) -> bool:
    return any(name == reader or name.startswith(f"{reader}.") for name in used_names(path) for reader in CONFIG_READERS)


def resources_made_in_apply(path: Path) -> set[str]:
    """Names of resource classes called inside a function that is handed to `apply`, as a lambda or by name."""
    names = imported_names(path)
    by_name = {function.name: function for function in functions(path)}
    callbacks = [
        by_name.get(argument.id) if isinstance(argument, ast.Name) else argument
        for call in ast.walk(tree(path))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "apply"
        for argument in call.args[:1]
    ]
    calls = [node for callback in callbacks if callback for node in ast.walk(callback) if isinstance(node, ast.Call)]
    made = {resolved(call.func, names) for call in calls}
    return {name for name in made if RESOURCE_MODULES.match(name) and name.rsplit(".", 1)[-1][:1].isupper() and not name.endswith("Args")}


def test_only_the_loader_reads_pulumis_configuration() -> None:
    assert [str(path) for path in python_files(*PROGRAM) if reads_config(path)] == ["stacks/loader.py"]


@pytest.mark.parametrize("path", python_files(*PROGRAM), ids=str)
def test_no_resource_is_made_inside_apply(path: Path) -> None:
    """A resource made there is missing from a preview in which the value is not known yet."""
    assert resources_made_in_apply(path) == set()


@pytest.mark.parametrize(
    "program",
    [
        "import pulumi_kubernetes as k\nx.apply(lambda v: k.core.v1.Secret('s'))",
        "from pulumi_kubernetes.core.v1 import Secret\ndef make(v):\n    return Secret('s')\nx.apply(make)",
        "from components import TritonServer\nx.apply(lambda v: [TritonServer('s')])",
    ],
)
def test_the_check_finds_a_resource_inside_apply(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = ast.parse(program)
    monkeypatch.setattr("tests.architecture.sources.tree", lambda _: parsed)
    monkeypatch.setattr("tests.architecture.test_pulumi_habits.tree", lambda _: parsed)
    assert len(resources_made_in_apply(Path("program.py"))) == 1
