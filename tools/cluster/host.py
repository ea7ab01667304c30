"""The distribution's programs: found also where a person's PATH leaves the system folders out, and run with their words kept for an error."""

import os
import shutil
import subprocess
from pathlib import Path

from tools.errors import ToolError

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _search_path() -> str:
    return f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"


def find_program(name: str) -> Path | None:
    found = shutil.which(name, path=_search_path())
    return None if found is None else Path(found)


def run(command: tuple[str, ...], hint: str) -> str:
    """Standard output of a program. Raises ToolError with its own words and `hint` when it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "PATH": _search_path()})
    if done.returncode != 0:
        raise ToolError(f"{' '.join(command)} failed: {done.stderr.strip()}", hint)
    return done.stdout
