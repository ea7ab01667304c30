"""Buildah with its store in the cache: no daemon, no network, no container runtime of the user's is touched."""

import os
import platform
import shutil
import subprocess
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from tools.errors import ToolError
from tools.images.contained import contained
from tools.toolchain.progress import Progress

LOG_TAIL_LINES = 15
# How buildah begins the line of an instruction.
STEP = "STEP "


@dataclass(frozen=True)
class Buildah:
    """`store` holds layers and is safe to delete while nothing is built."""

    store: Path

    def command(self, *arguments: str) -> list[str]:
        store = ("--root", str(self.store / "root"), "--runroot", str(self.store / "run"), "--storage-driver", "overlay")
        return contained("buildah", *store, *arguments)

    def has(self, ref: str) -> bool:
        return subprocess.run(self.command("inspect", "--type", "image", ref), capture_output=True, check=False).returncode == 0

    def build(self, ref: str, containerfile: Path, context: Path, base: str | None) -> None:
        """Build `ref`, which the Containerfile may read as the argument REF; chroot isolation needs neither a runtime nor namespaces, and so runs inside containers too."""
        arguments = ["build", "--isolation", "chroot", "--layers", "--tag", ref, "--file", str(containerfile), "--build-arg", f"REF={ref}"]
        if base is not None:
            arguments += ["--build-arg", f"BASE={base}"]
        # Only a base of a registry, by digest, is fetched; ours are in the store or missing.
        if base is None or base.startswith("localhost/"):
            arguments.append("--pull-never")
        self._run(f"image {ref}", *arguments, str(context))

    def export(self, ref: str, archive: Path) -> None:
        """Write `archive` (docker-archive: layers not compressed, importable by containerd 1.6 under the name `ref`), whole or not at all."""
        partial = archive.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        self._run(f"archive {archive.name}", "push", "--quiet", ref, f"docker-archive:{partial}:{ref}")
        partial.replace(archive)

    def _run(self, what: str, *arguments: str) -> None:
        log = self.store.with_name("build.log")
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        command = self.command(*arguments)
        with (
            Progress(what) as progress,
            log.open("w") as output,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as process,
        ):
            tail: deque[str] = deque(maxlen=LOG_TAIL_LINES)
            for line in process.stdout or ():
                output.write(line)
                tail.append(line)
                # The rest, a server's log at its check among it, reads like faults and matters only where there are some.
                if line.startswith(STEP):
                    progress.update(line.strip())
            if process.wait():
                raise ToolError(f"{what} failed:\n{''.join(tail)}", f"correct what is wrong (the whole log: {log}) and run the same command again")


def check_machine() -> None:
    """Raise ToolError, before anything is done, when images cannot be built on a machine like this."""
    if platform.system() != "Linux" or os.geteuid() != 0:
        raise ToolError(
            "images are built on Linux as root (debootstrap and chroot need it)",
            "run make in a Linux machine or container as root, with your kubeconfig: make up CONTEXT=<kube context>",
        )


def check_programs() -> None:
    """Raise ToolError, before anything is built, when this machine cannot build images."""
    check_machine()
    missing = [program for program in ("buildah", "debootstrap") if not shutil.which(program)]
    if missing:
        raise ToolError(f"programs that build images are missing: {', '.join(missing)}", f"apt-get install {' '.join(missing)}")
