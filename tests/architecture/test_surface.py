"""The public surface of the library, and what can be used without Pulumi."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import components
from tests.architecture.sources import code, python_files, tree

COMPONENT_FILES = [
    path
    for path in python_files("components")
    if any(isinstance(node, ast.ClassDef) and "PlatformComponent" in {ast.unparse(base) for base in node.bases} for node in tree(path).body)
]
PURE = [path for path in python_files("components") if path.stem.endswith("_manifest") or path.stem == "spec"]


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts)


def public_classes(path: Path) -> list[str]:
    classes = [node.name for node in tree(path).body if isinstance(node, ast.ClassDef)]
    return [name for name in classes if not name.startswith("_")]


def test_every_public_name_can_be_had_and_the_list_is_in_order() -> None:
    assert components.__all__ == sorted(set(components.__all__))
    for name in components.__all__:
        assert getattr(components, name).__name__ == name


@pytest.mark.parametrize("path", COMPONENT_FILES, ids=str)
def test_every_component_is_public_with_its_args(path: Path) -> None:
    assert set(public_classes(path)) <= set(components.__all__)


@pytest.mark.parametrize("path", COMPONENT_FILES, ids=str)
def test_a_file_holds_one_component(path: Path) -> None:
    module = importlib.import_module(module_of(path))
    base = importlib.import_module("components.base").PlatformComponent
    made_here = [
        value for value in vars(module).values() if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
    ]
    assert len(made_here) == 1


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = components.Nothing


@pytest.mark.parametrize("path", COMPONENT_FILES, ids=str)
def test_every_component_has_a_unit_test(path: Path) -> None:
    [component] = [name for name in public_classes(path) if not name.endswith("Args")]
    assert [test for test in python_files("tests") if component in code(test) and test.name != Path(__file__).name] != []


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("components", "serving", include_external_packages=True)


@pytest.mark.parametrize("path", PURE, ids=str)
def test_specs_and_manifest_functions_reach_no_pulumi(path: Path, imports: grimp.ImportGraph) -> None:
    reached = {
        chain[-1]
        for name in ("pulumi", "pulumi_kubernetes")
        if name in imports.modules
        if (chain := imports.find_shortest_chain(module_of(path), name))
    }
    assert reached == set()


def test_the_core_can_be_used_without_pulumi() -> None:
    program = "import sys, components.core.slo, components.core.slots; sys.exit('pulumi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
