"""Reads the few facts the toolchain needs out of a go.mod."""

import re
from pathlib import Path

from tools.errors import ToolError


def module_version(gomod: Path, module: str) -> str:
    """The version that `gomod` requires of `module`, such as v1.36.3. Raises ToolError when it does not require it."""
    match = re.search(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\S+)", gomod.read_text(), re.MULTILINE)
    if not match:
        raise ToolError(f"{gomod} does not require {module}", "add it with `go get -tool` in that folder")
    return match[1]


def module_path(gomod: Path) -> str:
    """The module's own name: packages that start with it are sources beside the go.mod."""
    match = re.search(r"^module\s+(\S+)", gomod.read_text(), re.MULTILINE)
    if not match:
        raise ToolError(f"{gomod} names no module", "add a `module` line")
    return match[1]


def go_directive(gomod: Path) -> str:
    """The oldest Go that the module builds with, such as 1.26.6."""
    match = re.search(r"^go\s+(\S+)", gomod.read_text(), re.MULTILINE)
    if not match:
        raise ToolError(f"{gomod} has no `go` directive", "add one with `go mod edit -go=<version>` in that folder")
    return match[1]


def version_tuple(version: str) -> tuple[int, ...]:
    """The numbers of a version in order: '1.26.6' and 'go1.26.6' and 'v1.26.6-rc.1' all give (1, 26, 6)."""
    match = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
