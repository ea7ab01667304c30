"""Log files of the cluster's processes: appended to, kept within bounds."""

import os
import shutil
from pathlib import Path

LIMIT_BYTES = 16 * 1024 * 1024
CHECK_SECONDS = 5.0


def redirect(file: Path) -> None:
    """Sends the calling process's output to `file`, and takes its input away."""
    file.parent.mkdir(parents=True, exist_ok=True)
    output = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.close(nothing)


def bound(directory: Path, limit_bytes: int = LIMIT_BYTES) -> None:
    """Moves the content of a log that grew over the limit to `<log>.1`. It is copied and cut, not renamed: its process keeps writing to the same file."""
    for file in directory.glob("*.log"):
        if file.stat().st_size > limit_bytes:
            shutil.copyfile(file, file.with_suffix(".log.1"))
            os.truncate(file, 0)


def tail(file: Path, lines: int = 5) -> str:
    """The last lines of a log, for an error's text; empty when there is none."""
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - 8192))
        return "\n".join(stream.read().decode(errors="replace").splitlines()[-lines:])
