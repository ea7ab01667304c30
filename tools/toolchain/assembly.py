"""Puts the toolchain together: what is on the machine is used, what is missing is built."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.errors import ToolError
from tools.paths import cache_dir
from tools.toolchain.build import bin_directory, ensure_group
from tools.toolchain.catalog import BY_NAME, GROUPS, Group
from tools.toolchain.existing import find_language_host, find_provider, find_pulumi
from tools.toolchain.istio import ensure_istio_files
from tools.toolchain.languagehost import NAME as LANGUAGE_HOST
from tools.toolchain.languagehost import install_language_host
from tools.toolchain.provider import BINARY as PROVIDER
from tools.toolchain.provider import install_plugin

DEFAULT_GROUPS = tuple(group.name for group in GROUPS if group.default)
# What a person's shell gets on PATH; the rest is used by its full path. The provider must not be on PATH (see provider.install_plugin).
FOR_PEOPLE = ("pulumi", LANGUAGE_HOST, "kubectl")


@dataclass(frozen=True)
class Toolchain:
    """The programs by name, and Pulumi's folder with the provider in it."""

    binaries: Mapping[str, Path]
    pulumi_home: Path

    def path(self, name: str) -> Path:
        """Where the program `name` is. Raises ToolError for one that was not asked for."""
        if name not in self.binaries:
            raise ToolError(
                f"the toolchain has no program '{name}' (it has: {', '.join(sorted(self.binaries))})", "name its group in ensure(groups=...)"
            )
        return self.binaries[name]

    def bin_dirs(self) -> tuple[Path, ...]:
        """The folders to put on PATH, each once."""
        return tuple(dict.fromkeys(self.binaries[name].parent for name in FOR_PEOPLE if name in self.binaries))

    def env(self) -> dict[str, str]:
        """PATH and PULUMI_HOME for `pulumi` and `kubectl` as a person would run them."""
        path = os.pathsep.join([*map(str, self.bin_dirs()), os.environ.get("PATH", os.defpath)])
        return {"PATH": path, "PULUMI_HOME": str(self.pulumi_home)}


def ensure(groups: Iterable[str] = DEFAULT_GROUPS) -> Toolchain:
    """Find or build every program of `groups` (names in catalog.GROUPS); does nothing but look when all is there. Raises ToolError."""
    binaries: dict[str, Path] = {}
    home = cache_dir() / "pulumi-home"
    wanted = [_group(name) for name in groups]
    for group in wanted:
        binaries.update(_existing(group) or _built(group))
    if any(group.name == "cluster" for group in wanted):
        ensure_istio_files()
    if "pulumi" in binaries:
        binaries[LANGUAGE_HOST] = _language_host(binaries["pulumi"])
    if PROVIDER in binaries:
        install_plugin(home, binaries[PROVIDER])
    return Toolchain(binaries, home)


def status() -> dict[str, Path | None]:
    """Each program of the default groups and where it is now; None for one that `ensure()` would build."""
    places: dict[str, Path | None] = {}
    for group in map(_group, DEFAULT_GROUPS):
        built = bin_directory(group)
        places.update({name: built / name if built.exists() else None for name in group.tools} | _existing(group))
    return places


def _group(name: str) -> Group:
    if name not in BY_NAME:
        raise ToolError(f"there is no group of programs '{name}'", f"the groups are {', '.join(BY_NAME)}")
    return BY_NAME[name]


def _built(group: Group) -> dict[str, Path]:
    folder = ensure_group(group)
    return {name: folder / name for name in group.tools}


def _existing(group: Group) -> dict[str, Path]:
    """Only Pulumi and its provider are looked for: a cluster made of strangers' binaries would be another cluster than the one that is tested."""
    finders = {"pulumi": ("pulumi", find_pulumi), "provider": (PROVIDER, find_provider)}
    if group.name not in finders:
        return {}
    name, find = finders[group.name]
    found = find()
    return {name: found} if found else {}


def _language_host(pulumi: Path) -> Path:
    """Pulumi's own host where Pulumi's own engine is used, else ours."""
    if not pulumi.is_relative_to(cache_dir()):
        return find_language_host() or install_language_host(cache_dir() / "bin")
    return install_language_host(pulumi.parent)
