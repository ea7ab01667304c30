"""`make prune`: the cache grows by an image or an environment with each change of their inputs; what nobody has used for a while goes."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from components.core.command_line import CommandLine
from tools.cli import run_main
from tools.paths import cache_dir

# Complete or absent, named after their inputs, and made again when they are missing. Clusters (`make down`) and the backend's state are not among them.
KINDS = ("images/*.tar", "images/rootfs/*", "toolchain/*", "venv/*", "wheels/*")
LOCK = ".lock"
DAYS = 14.0
DAY_SECONDS = 86_400
MIB = 2**20


def used(entry: Path) -> Path:
    """Note that `entry` is in use; a cache that another user owns keeps its own account."""
    with suppress(OSError):
        os.utime(entry)
    return entry


def unused(root: Path, days: float, now: float) -> Iterator[Path]:
    """Entries that nobody has used for `days`, but for the Python environment that this runs in."""
    entries = (entry for kind in KINDS for entry in sorted(root.glob(kind)) if entry.suffix != LOCK and not entry.name.startswith("."))
    for entry in entries:
        if now - entry.lstat().st_mtime >= days * DAY_SECONDS and not Path(sys.prefix).resolve().is_relative_to(entry.resolve()):
            yield entry


def remove(entry: Path) -> int:
    """Delete `entry` and return its size in bytes. It is renamed first, so that a killed run leaves no half of it under its name."""
    files = [entry] if entry.is_file() else [path for path in entry.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(file.lstat().st_size for file in files)
    doomed = entry.with_name(f".{entry.name}.pruned")
    entry.rename(doomed)
    shutil.rmtree(doomed) if doomed.is_dir() else doomed.unlink()
    return size


def _days(value: str) -> float:
    days = float(value)
    if not 0 <= days < float("inf"):
        raise argparse.ArgumentTypeError(f"{value} is no number of days: 0 or more")
    return days


def main() -> int:
    parser = CommandLine(description=__doc__)
    parser.add_argument("--days", type=_days, default=DAYS, help="keep what was used within so many days; default: %(default)g")
    sizes = []
    for entry in list(unused(cache_dir(), parser.parse_args().days, time.time())):
        sizes.append(remove(entry))
        print(f"{entry.relative_to(cache_dir())}: {sizes[-1] / MIB:.0f} MiB")
    print(f"{len(sizes)} entries removed, {sum(sizes) / MIB:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
