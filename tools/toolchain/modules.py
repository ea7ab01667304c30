"""Files out of Go modules: the module cache may be cleaned at any time, so what is needed later is copied."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tools.errors import ToolError
from tools.toolchain.catalog import BUILD_ENV

RETRY_HINT = (
    "run it again: what is downloaded and compiled already is kept. If modules cannot be downloaded here, "
    "point GOPROXY at a proxy that you can reach (GOFLAGS and GONOSUMDB are yours to set as well)"
)


def module_directory(go: str, directory: Path, module: str) -> Path:
    """Where the sources of `module`, at the version that `directory`/go.mod pins, lie; downloads them first when they are missing."""
    done = subprocess.run(
        [go, "mod", "download", "-json", module], cwd=directory, env={**os.environ, **BUILD_ENV}, capture_output=True, text=True, check=False
    )
    facts = json.loads(done.stdout) if done.stdout.strip() else {}
    if "Dir" not in facts:
        reason = facts.get("Error") or done.stderr.strip()
        raise ToolError(f"the Go module {module} could not be downloaded: {reason}", RETRY_HINT)
    return Path(facts["Dir"])


def copy_files(source: Path, target: Path, wanted: Mapping[str, str]) -> None:
    """Copy files and folders: name in `target` -> name in `source`. Content only: the module cache is read-only, the copies are not."""
    for name, origin in wanted.items():
        path = source / origin
        for file in [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file()):
            copy = target / name / file.relative_to(path) if path.is_dir() else target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
