"""Which Python runs a program or plugin, and in which environment."""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class HostError(Exception):
    """The project asks for something this host cannot do; the text says what and how to go on."""


@dataclass(frozen=True)
class Interpreter:
    """`executable` is the Python; `virtualenv` the folder it belongs to, where the project names one."""

    executable: str
    virtualenv: Path | None = None

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` as `source bin/activate` would change it, so that programs which start programs find the right ones."""
        environment = dict(base)
        if self.virtualenv:
            environment.pop("PYTHONHOME", None)
            environment["VIRTUAL_ENV"] = str(self.virtualenv)
            environment["PATH"] = os.pathsep.join([str(self.virtualenv / "bin"), environment.get("PATH", os.defpath)])
        return environment


def virtualenv_of(root: Path, options: Mapping[str, Any]) -> Path | None:
    """The folder that the runtime option `virtualenv` names, relative to the project; None without the option. Raises HostError on another toolchain."""
    toolchain = options.get("toolchain", "pip")
    if toolchain != "pip":
        raise HostError(
            f"runtime option toolchain is '{toolchain}', but this language host knows only 'pip': install Pulumi's own release for the others"
        )
    option = options.get("virtualenv")
    return root / str(option) if option else None


def interpreter_of(root: Path, options: Mapping[str, Any]) -> Interpreter:
    """The virtual environment's Python; without one this host's own, which has the SDK. Raises HostError where the folder holds no Python."""
    virtualenv = virtualenv_of(root, options)
    if virtualenv is None:
        return Interpreter(sys.executable)
    executable = virtualenv / "bin" / "python"
    if not executable.exists():
        raise HostError(
            f"the 'virtualenv' option of the project in {root} is '{options['virtualenv']}', but {virtualenv} is no virtual environment: run `make venv` or `pulumi install`"
        )
    return Interpreter(str(executable), virtualenv)


def parse_environment(entries: Iterable[str]) -> dict[str, str]:
    """`NAME=value` entries as the engine sends them; the last of a name wins."""
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)
