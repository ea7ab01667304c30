"""A toolchain of shell scripts: what the commands behind `make` call, and a record of the calls."""

from pathlib import Path

from tools.toolchain import Toolchain


def scripted(folder: Path, **bodies: str) -> Toolchain:
    """Programs by name, each a shell script with this body; every call is a line of `<folder>/calls`."""
    programs = {name: folder / "bin" / name for name in bodies}
    (folder / "bin").mkdir(parents=True)
    for name, body in bodies.items():
        programs[name].write_text(f'#!/bin/sh\necho "{name} $*" >> {folder}/calls\n{body}\n')
        programs[name].chmod(0o755)
    return Toolchain(programs, folder / "pulumi-home")


def calls(folder: Path) -> list[str]:
    record = folder / "calls"
    return record.read_text().splitlines() if record.exists() else []
