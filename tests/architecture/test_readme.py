"""What the documents tell people to run exists."""

import re
from pathlib import Path

import pytest

from tests.architecture.sources import text, tracked
from tools.paths import REPO

MAKE_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
# In prose commands stand in backquotes or code blocks; `make` elsewhere is an English word.
CODE = re.compile(r"```[\s\S]*?```|`[^`\n]+`|^ {4}.*$", re.MULTILINE)
MAKE_COMMAND = re.compile(r"\bmake ([a-z][a-z-]*)\b")
MODULE_COMMAND = re.compile(r"python3? -m ([a-z_]+(?:\.[a-z_]+)*)")
OURS = {"components", "loadtests", "serving", "stacks", "tools"}

DOCUMENTS = [path for path in tracked() if path.suffix == ".md"]


def commands(document: Path, pattern: re.Pattern[str]) -> set[str]:
    return {match for block in CODE.findall(text(document)) for match in pattern.findall(block)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_make_command_in_a_document_is_a_target(document: Path) -> None:
    targets = set(MAKE_TARGET.findall((REPO / "Makefile").read_text(encoding="utf-8")))
    assert commands(document, MAKE_COMMAND) - targets == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_every_module_a_document_runs_is_there(document: Path) -> None:
    modules = {name for name in commands(document, MODULE_COMMAND) if name.split(".")[0] in OURS}
    missing = {name for name in modules if not (REPO / name.replace(".", "/")).is_dir() and not (REPO / f"{name.replace('.', '/')}.py").is_file()}
    assert missing == set()


def test_the_readme_names_both_commands() -> None:
    assert {"up", "test"} <= commands(next(path for path in DOCUMENTS if str(path) == "README.md"), MAKE_COMMAND)
