"""Makes the Python environment: `python3 tools/bootstrap.py`, standard library only.

The environment lies in the cache, keyed by requirements.txt and the Python that runs this, and `.venv` in the clone is a link to it: a second clone starts at
once, and an edit of requirements.txt makes a new environment instead of changing one in use. An interrupted run is begun anew by the next.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from contextlib import suppress
from pathlib import Path

MINIMUM_PYTHON = (3, 11)
REPO = Path(__file__).resolve().parent.parent
REQUIREMENTS = REPO / "requirements.txt"
INSTALLER = REPO / "tools" / "installer-requirements.txt"
# Three thousand modules, none of which the local stack imports.
PRECOMPILE_SKIPS = "pulumi_aws"
# Written last: an environment without it is unfinished.
MARKER = "complete"


def main() -> int:
    if sys.version_info < MINIMUM_PYTHON:
        wanted, found = (".".join(map(str, version[:2])) for version in (MINIMUM_PYTHON, sys.version_info))
        return _fail(f"Python {wanted} or newer is needed, but {sys.executable} is {found}: run `make PYTHON=/path/to/python{wanted} ...`")
    environment = cache_dir() / "venv" / environment_key()
    try:
        if not (environment / MARKER).exists():
            create(environment)
        link(REPO / ".venv", environment)
        used(environment)
    except (OSError, subprocess.CalledProcessError) as error:
        return _fail(f"the Python environment {environment} could not be made: {error}\n  -> correct what the lines above name, then run it again")
    return 0


def cache_dir() -> Path:
    """As tools.paths.cache_dir(), which cannot be imported from here: this file runs before any environment exists."""
    explicit = os.environ.get("INFERENCE_PLATFORM_CACHE")
    if explicit:
        return Path(explicit).expanduser().resolve()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "inference-platform"


def environment_key() -> str:
    """Twelve hex digits for this Python (its path too: the environment links to it) and these requirements."""
    python = f"{sys.version} {Path(sys.executable).resolve()}"
    return hashlib.sha256(REQUIREMENTS.read_bytes() + INSTALLER.read_bytes() + python.encode()).hexdigest()[:12]


def create(environment: Path) -> None:
    """Make `environment`, one process at a time. Raises CalledProcessError when pip fails; it has said why by then."""
    import fcntl  # noqa: PLC0415  absent on Windows, where the version check above shall still speak

    environment.parent.mkdir(parents=True, exist_ok=True)
    with environment.with_name(f"{environment.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (environment / MARKER).exists():
            return
        shutil.rmtree(environment, ignore_errors=True)
        venv.create(environment, with_pip=True, symlinks=True)
        install(environment / "bin" / "python")
        (environment / MARKER).touch()


def install(python: Path) -> None:
    """Install the lock as it stands: complete and by hash, so nothing is left to resolve (docs/adr/0002-dependencies.md).

    uv does in seconds what takes pip two minutes (thousands of files of the cloud SDKs), but it does not read pip's settings: where it cannot reach
    its index, pip does the work. Modules are compiled ahead, since a short-lived Pulumi program is slow without; all but PRECOMPILE_SKIPS.
    """
    started = time.monotonic()
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--no-deps", "--require-hashes"]
    _progress("Python environment: installing ...")
    subprocess.run([*pip, "-r", str(INSTALLER)], check=True)
    uv = [str(python.with_name("uv")), "pip", "install", "--python", str(python), "--quiet", "--no-deps", "--require-hashes"]
    if subprocess.run([*uv, "-r", str(REQUIREMENTS)], check=False).returncode != 0:
        _progress("Python environment: uv failed, pip installs instead (about two minutes)")
        subprocess.run([*pip, "--no-compile", "-r", str(REQUIREMENTS)], check=True)
    subprocess.run([str(python), "-m", "compileall", "-q", "-j", "0", "-x", PRECOMPILE_SKIPS, str(python.parent.parent / "lib")], check=False)
    _progress(f"Python environment: {time.monotonic() - started:.0f}s")


def link(place: Path, environment: Path) -> None:
    """`.venv` becomes a link to the environment; a real folder of that name is somebody's own and stays: then OSError."""
    if place.is_symlink() and place.readlink() == environment:
        return
    if place.exists() and not place.is_symlink():
        raise OSError(f"{place} is not a link of ours: move it away")
    partial = place.with_name(f".venv.{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(environment)
    partial.replace(place)


def used(environment: Path) -> None:
    """As tools.cache.used(), by which `make prune` tells what nobody needs any more."""
    with suppress(OSError):
        os.utime(environment)


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
