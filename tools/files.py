"""Files that a reader, or an interruption, never sees half-written."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Readers see the old or the new content, never a part, and a private file is private from its first byte; nothing happens when it says so already."""
    content = text.encode()
    if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o777 == mode and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        # Whatever the user's umask takes away.
        os.fchmod(descriptor, mode)
        stream.write(content)
    partial.replace(path)
