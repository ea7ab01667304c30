"""Compiles a group of programs with one `go build`, so that they share every library and one pass over the sources."""

import os
import re
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile

from tools.cache import used
from tools.errors import ToolError
from tools.paths import toolchain_dir
from tools.toolchain.catalog import BUILD_ENV, BUILD_FLAGS, Group
from tools.toolchain.go import ensure_go
from tools.toolchain.modules import RETRY_HINT
from tools.toolchain.progress import Progress
from tools.toolchain.provider import prepare_provider
from tools.toolchain.storage import locked, published

REPORTED_LINES = 25
DOWNLOADING = "go: downloading "
PACKAGE = re.compile(r"^[A-Za-z0-9][\w.\-~]*(/[\w.\-~+]+)*$")
VERSION_SUFFIX = re.compile(r"^v\d+$")


# The compiler ends within a second; a linker that writes a large binary may take longer.
END_SECONDS = 30.0


def bin_directory(group: Group) -> Path:
    """Where the programs of a group are, once built: one place for each content of its go.mod, go.sum, sources and build flags."""
    return toolchain_dir() / f"{group.name}-{group.key}" / "bin"


def ensure_group(group: Group) -> Path:
    """Build what is missing and return its bin directory. Raises ToolError when a download or the compiler fails."""
    target = bin_directory(group).parent
    what = ", ".join(group.tools)
    if not target.exists():
        with locked(target, what):
            if not target.exists():
                with published(target) as partial:
                    _build(group, partial / "bin")
    return used(target) / "bin"


def _build(group: Group, output: Path) -> None:
    go = ensure_go()
    directory = prepare_provider(go) if group.name == "provider" else group.directory
    flags = [*BUILD_FLAGS, "-ldflags", group.ldflags]
    packages = list(group.tools.values())
    output.mkdir()
    with Progress(f"building {group.name} ({len(packages)} programs)" if len(packages) > 1 else f"building {group.name}") as progress:
        stale = stale_packages([go, "list", *flags, "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", *packages], directory, progress)
        counter = Counter(progress, len(stale))
        _run([go, "build", "-v", *flags, "-o", f"{output}{os.sep}", *packages], directory, counter)
    for name, package in group.tools.items():
        (output / default_name(package)).rename(output / name)


class Counter:
    """Turns the compiler's output into progress; keeps the last lines that are neither packages nor downloads for an error."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._compiled = 0
        self._downloads = 0
        self.lines: deque[str] = deque(maxlen=REPORTED_LINES)

    def __call__(self, line: str) -> None:
        if line.startswith(DOWNLOADING):
            self._downloads += 1
            self._progress.update(f"{self._downloads} modules downloaded, now {line.removeprefix(DOWNLOADING)}")
        elif PACKAGE.match(line):
            self._compiled += 1
            self._progress.update(f"{self._compiled} of {max(self._total, self._compiled)} packages, now {line}")
        elif line.strip():
            self.lines.append(line)


def stale_packages(command: list[str], directory: Path, progress: Progress) -> list[str]:
    """The packages that the build will compile: not in Go's build cache yet. Downloads the modules, as a side effect."""
    counter = Counter(progress, 0)
    with TemporaryFile("w+") as listing:
        _run(command, directory, counter, stdout=listing.fileno())
        listing.seek(0)
        return [line for line in listing.read().splitlines() if line]


def _run(command: list[str], directory: Path, counter: Counter, *, stdout: int = subprocess.DEVNULL) -> None:
    code = stream_errors(command, directory, counter, stdout)
    if code:
        raise ToolError(f"`{' '.join(command[:2])} {command[-1]}` failed in {directory}:\n" + "\n".join(counter.lines), RETRY_HINT)


def stream_errors(command: list[str], directory: Path, on_line: Callable[[str], None], stdout: int) -> int:
    """Run and hand over each line of standard error; an interrupt ends the compiler too. Returns the exit code."""
    with subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, **BUILD_ENV},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            for line in process.stderr or ():
                on_line(line.rstrip("\n"))
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            # Popen's own exit waits a quarter of a second for an interrupted child; the next run must not meet this one's compiler.
            process.wait(END_SECONDS)
            raise


def default_name(package: str) -> str:
    """How `go build` names a package's program: its last path element that is not a major version."""
    return next(element for element in reversed(package.split("/")) if not VERSION_SUFFIX.match(element))
