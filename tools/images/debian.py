"""The root file system that images with a C library start from."""

import shutil
import subprocess
from pathlib import Path

from tools.errors import ToolError
from tools.images.contained import contained
from tools.toolchain.progress import Progress

SUITE = "bookworm"
# Triton's stub is linked against libpython3.11; onnxruntime needs libgomp.
PACKAGES = ("python3-minimal", "libpython3.11", "libgomp1")
# Read by the package manager and by people at a terminal; two thirds of what debootstrap leaves.
PRUNED = ("dev/*", "var/cache/*", "var/lib/apt/*", "var/log/*", "usr/share/doc/*", "usr/share/man/*", "usr/share/info/*", "usr/share/locale/*")


def make_rootfs(target: Path) -> None:
    """Run debootstrap into `target` and prune it. Raises ToolError with the end of its log."""
    command = debootstrap_command(target, mirror())
    with (
        Progress("Debian root file system") as progress,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
    ):
        lines: list[str] = []
        for line in process.stdout or ():
            lines.append(line)
            progress.update(line.removeprefix("I: ").strip())
        if process.wait():
            raise ToolError(f"debootstrap failed:\n{''.join(lines[-5:])}", "run the same command again when the Debian mirror is reachable")
        for pattern in PRUNED:
            for path in target.glob(pattern):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def debootstrap_command(target: Path, mirror_url: str | None) -> list[str]:
    command = contained("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(target))
    return [*command, mirror_url] if mirror_url else command


def mirror() -> str | None:
    """The mirror this machine itself uses for the suite; None (debootstrap's own default) where it uses none."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", f"Codename: {SUITE}", "Component: main"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return next(iter(done.stdout.split()), None)
