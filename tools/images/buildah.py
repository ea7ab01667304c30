"""Buildah with its store in the cache: no daemon, no network, no container runtime of the user's is touched."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.errors import ToolError
from tools.toolchain.progress import Progress

LOG_TAIL = 15


@dataclass(frozen=True)
class Buildah:
    """`store` holds layers and is safe to delete while nothing is built."""

    store: Path

    def command(self, *arguments: str) -> list[str]:
        return ["buildah", "--root", str(self.store / "root"), "--runroot", str(self.store / "run"), "--storage-driver", "overlay", *arguments]

    def has(self, ref: str) -> bool:
        return subprocess.run(self.command("inspect", "--type", "image", ref), capture_output=True, check=False).returncode == 0

    def build(self, ref: str, containerfile: Path, context: Path, base: str | None) -> None:
        """Build `ref`; chroot isolation needs neither a runtime nor namespaces, and so runs inside containers too."""
        arguments = ["build", "--isolation", "chroot", "--layers", "--pull-never", "--tag", ref, "--file", str(containerfile)]
        if base:
            # A base that is not ours (a registry's, by digest) is fetched.
            arguments = [*(a if a != "--pull-never" or base.startswith("localhost/") else "--pull" for a in arguments), "--build-arg", f"BASE={base}"]
        self._run(f"image {ref}", *arguments, str(context))

    def export(self, ref: str, archive: Path) -> None:
        """Write `archive` (docker-archive: layers not compressed, importable by containerd 1.6 under the name `ref`), whole or not at all."""
        partial = archive.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        self._run(f"archive {archive.name}", "push", "--quiet", ref, f"docker-archive:{partial}:{ref}")
        partial.replace(archive)

    def _run(self, what: str, *arguments: str) -> None:
        with Progress(what) as progress:
            environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
            process = subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
            lines: list[str] = []
            for line in process.stdout or ():
                lines.append(line)
                progress.update(line.strip())
            if process.wait():
                raise ToolError(f"{what} failed:\n{''.join(lines[-LOG_TAIL:])}", "correct what the last lines name and run the same command again")


def check_programs() -> None:
    """Raise ToolError, before anything is built, when this machine cannot build images."""
    missing = [program for program in ("buildah", "debootstrap") if not shutil.which(program)]
    if missing:
        raise ToolError(f"programs that build images are missing: {', '.join(missing)}", f"apt-get install {' '.join(missing)}")
    if os.geteuid() != 0:
        raise ToolError("images are built as root (debootstrap and chroot need it)", "use sudo, or run this inside a container")
