"""Installs our language host (tools/languagehost) into the cache, where it outlives the clone."""

import shlex
import shutil
import sys
from pathlib import Path

from tools.cache import used
from tools.files import write_atomically
from tools.paths import REPO, content_key, toolchain_dir
from tools.toolchain.storage import locked, published

NAME = "pulumi-language-python"
SOURCES = REPO / "tools" / "languagehost"


def install_language_host(folder: Path) -> Path:
    """Write `pulumi-language-python` into `folder` and return it. It runs with this very Python, which has the SDK.

    `folder` is the one of our `pulumi`: the engine takes a language host beside itself without the warning that it gives for one elsewhere on PATH.
    """
    wrapper = folder / NAME
    write_atomically(wrapper, _script(_install_sources()), mode=0o755)
    return wrapper


def _install_sources() -> Path:
    files = sorted(SOURCES.glob("*.py"))
    target = toolchain_dir() / f"languagehost-{content_key(files)}"
    if not target.exists():
        with locked(target, "language host"):
            if not target.exists():
                with published(target) as partial:
                    (partial / SOURCES.name).mkdir()
                    for file in files:
                        shutil.copyfile(file, partial / SOURCES.name / file.name)
    return used(target)


def _script(library: Path) -> str:
    program = f"import sys; sys.path.insert(0, {str(library)!r}); from languagehost.__main__ import main; main()"
    return f'#!/bin/sh\n# Written by tools/toolchain/languagehost.py.\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(program)} "$@"\n'
