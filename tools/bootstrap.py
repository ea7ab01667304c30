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
from pathlib import Path

MINIMUM_PYTHON = (3, 11)
REPO = Path(__file__).resolve().parent.parent
REQUIREMENTS = REPO / "requirements.txt"
# Written last: an environment without it is unfinished.
MARKER = "complete"
LOG_EVERY_SECONDS = 15.0


def main() -> int:
    if sys.version_info < MINIMUM_PYTHON:
        wanted, found = (".".join(map(str, version[:2])) for version in (MINIMUM_PYTHON, sys.version_info))
        return _fail(f"Python {wanted} or newer is needed, but {sys.executable} is {found}: run `make PYTHON=/path/to/python{wanted} ...`")
    environment = cache_dir() / "venv" / environment_key()
    try:
        if not (environment / MARKER).exists():
            create(environment)
        link(REPO / ".venv", environment)
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
    return hashlib.sha256(REQUIREMENTS.read_bytes() + python.encode()).hexdigest()[:12]


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
    """Install the lock as it stands: complete and by hash, so nothing is left for pip to resolve (docs/adr/0002-dependencies.md).

    Modules are compiled when they are first imported: the cloud SDKs alone have thousands, of which a stack imports a few.
    """
    total = sum(1 for line in REQUIREMENTS.read_text().splitlines() if "==" in line and not line.startswith((" ", "#")))
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--require-hashes",
        "--disable-pip-version-check",
        "--no-input",
        "-r",
        str(REQUIREMENTS),
    ]
    started = shown = time.monotonic()
    collected = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pip:
        for line in pip.stdout or ():
            collected += line.startswith("Collecting ")
            now = time.monotonic()
            if sys.stderr.isatty() or now - shown >= LOG_EVERY_SECONDS or line.startswith("Installing collected"):
                shown = now
                _progress(f"Python environment: {collected} of {total} packages fetched, {now - started:.0f}s")
    _progress(f"Python environment: {total} packages, {time.monotonic() - started:.0f}s", final=True)
    if pip.returncode:
        raise subprocess.CalledProcessError(pip.returncode, "pip install")


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


def _progress(text: str, *, final: bool = False) -> None:
    terminal = sys.stderr.isatty()
    sys.stderr.write(f"\r\x1b[2K{text}" if terminal else text)
    sys.stderr.write("\n" if final or not terminal else "")
    sys.stderr.flush()


def _fail(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
