"""What is on the machine already: Pulumi, its Python language host and the Kubernetes provider."""

import os
import shutil
import subprocess
from pathlib import Path

from tools.paths import cache_dir
from tools.toolchain.gomod import version_tuple
from tools.toolchain.provider import BINARY, plugin_folder

# The release of the pinned Python SDK: an older engine lacks calls that the SDK makes. A newer engine serves older SDKs.
MINIMUM_PULUMI = "3.272.0"


def find_program(name: str) -> Path | None:
    """`name` on PATH, except for our own builds, which `make env` puts there and which go by their key, not by their place."""
    cache = cache_dir()
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if not Path(folder).resolve().is_relative_to(cache)]
    found = shutil.which(name, path=os.pathsep.join(folders))
    return Path(found) if found else None


def find_pulumi() -> Path | None:
    """A Pulumi on PATH that is new enough."""
    found = find_program("pulumi")
    if not found:
        return None
    answer = subprocess.run([found, "version"], capture_output=True, text=True, check=False, env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"})
    return found if version_tuple(answer.stdout) >= version_tuple(MINIMUM_PULUMI) else None


def find_language_host() -> Path | None:
    return find_program("pulumi-language-python")


def user_pulumi_home() -> Path:
    """The person's own Pulumi folder, also when `make env` has pointed PULUMI_HOME at ours."""
    explicit = os.environ.get("PULUMI_HOME")
    if explicit and not Path(explicit).resolve().is_relative_to(cache_dir()):
        return Path(explicit)
    return Path.home() / ".pulumi"


def find_provider() -> Path | None:
    """The provider on PATH (the engine prefers that one) or, in exactly the SDK's version, in the person's plugin folder."""
    on_path = find_program(BINARY)
    if on_path:
        return on_path
    folder = user_pulumi_home() / "plugins" / plugin_folder()
    binary = folder / BINARY
    return binary if binary.exists() and not folder.with_name(f"{folder.name}.partial").exists() else None
