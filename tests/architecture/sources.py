"""What the architecture tests look at: tracked files and their syntax trees."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.paths import REPO

# Written by programs; their length says nothing.
GENERATED = {"optimisation.json", "optimisation.svg", "requirements.txt", "results.json", "schema.json", "go.sum", "go.mod"}
GENERATED_FOLDERS = {"__snapshots__"}
# Of others, kept as published.
FOREIGN = Path("tests/data")


@cache
def tracked() -> tuple[Path, ...]:
    """Files git knows or would add, relative to the repository's root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=REPO, check=True, capture_output=True, text=True
    ).stdout
    return tuple(sorted(Path(line) for line in listed.splitlines() if (REPO / line).is_file()))


def written() -> tuple[Path, ...]:
    """Tracked files that people write."""
    ours = (path for path in tracked() if not path.is_relative_to(FOREIGN) or path.parent == FOREIGN)
    return tuple(path for path in ours if path.name not in GENERATED and not GENERATED_FOLDERS & set(path.parts))


def python_files(*roots: str) -> tuple[Path, ...]:
    return tuple(path for path in written() if path.suffix == ".py" and (not roots or path.parts[0] in roots))


def text(path: Path) -> str:
    return (REPO / path).read_text(encoding="utf-8", errors="replace")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


@cache
def code(path: Path) -> str:
    """A file without its comments."""
    return ast.unparse(tree(path))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a name or attribute; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{above}.{node.attr}" if (above := dotted(node.value)) else ""
    return ""


def imported_names(path: Path) -> dict[str, str]:
    """Local name -> full dotted name of everything a file imports, at any depth."""
    names: dict[str, str] = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name.split(".")[0]: alias.name if alias.asname else alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module or ''}.{alias.name}" for alias in node.names}
    return names


def resolved(node: ast.expr, names: dict[str, str]) -> str:
    """The full dotted name behind an expression, as far as imports tell."""
    name = dotted(node)
    head, _, rest = name.partition(".")
    full = names.get(head, head)
    return f"{full}.{rest}" if rest else full
