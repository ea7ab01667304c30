"""A directory as a place of inputs or answers."""

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

from serving.batch.errors import BatchError, LockError, ReadError, StoreOutageError
from serving.batch.storage import LOCK, PARTIAL, SCHEME, Item

# Fingerprint of what has no state.
UNREADABLE = "unreadable"
# Of a disk that is full or a volume whose server is away; the others stay until somebody changes something.
TRANSIENT = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.ECONNREFUSED, errno.ECONNRESET}
    | {errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EAGAIN, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)
# Of link(2) on a file system that has none, such as SMB or a bucket that is mounted.
NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})


class DirectoryStorage:
    """Files below `root`. Links to files are followed, links to directories are not, because they may lead in circles; pipes and devices are no files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    def below(self, name: str) -> "DirectoryStorage":
        return DirectoryStorage(self.root / name)

    def items(self) -> list[Item]:
        try:
            return sorted(self._items(), key=lambda item: item.id) if self.root.exists() else []
        except OSError as error:
            raise _fault(f"{error.filename}", error, "make the directory readable for this user") from error

    def _items(self) -> Iterator[Item]:
        for folder, _, files in os.walk(self.root, onerror=_raise):
            for name in files:
                path = Path(folder, name)
                item_id = path.relative_to(self.root).as_posix()
                try:
                    found = path.stat()
                except OSError:
                    # A link to nothing, or a file that went this moment: listed all the same, so that its record says what is wrong.
                    yield Item(item_id, 0, UNREADABLE)
                    continue
                if stat.S_ISREG(found.st_mode):
                    yield Item(item_id, *_state(found))

    def read(self, item: Item) -> bytes:
        try:
            with (self.root / item.id).open("rb") as stream:
                content = stream.read()
                # After reading: a writer at work meanwhile has changed size or time.
                state = _state(os.fstat(stream.fileno()))
        except OSError as error:
            # EIO may be one bad block, which stops nothing else.
            if error.errno in TRANSIENT - {errno.EIO}:
                raise _fault(f"{self.root / item.id} cannot be read", error, "") from error
            raise ReadError(f"cannot be read: {error.strerror}") from error
        if state != (item.size, item.fingerprint) or len(content) != item.size:
            raise ReadError("changed after it was listed")
        return content

    def create(self, name: str, content: bytes) -> bool:
        with self._written(name, content) as (partial, target):
            try:
                target.hardlink_to(partial)
            except FileExistsError:
                return target.read_bytes() == content
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                raise BatchError(
                    f"{target.parent} lies on a file system without hard links: two clients could write the same part",
                    hint=f"name an output on another volume (a disk, NFS), or {SCHEME}bucket/prefix",
                ) from error
            _sync_directory(target.parent)
            return True

    def replace(self, name: str, content: bytes) -> None:
        with self._written(name, content) as (partial, target):
            partial.replace(target)
            _sync_directory(target.parent)

    @contextmanager
    def _written(self, name: str, content: bytes) -> Iterator[tuple[Path, Path]]:
        """The content, durable, in a file beside its place; that file is gone afterwards."""
        target = self.root / name
        partial = target.with_name(f".{target.name}.{os.getpid()}{PARTIAL}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            yield partial, target
        except OSError as error:
            raise _fault(f"{target} cannot be written", error, "correct the permissions, then run the same command again") from error
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator["_DirectoryLock"]:
        """flock: the kernel lets go of it however the process ends."""
        path = self.root / LOCK
        with ExitStack() as stack:
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                stream = stack.enter_context(path.open("a+", encoding="utf-8"))
                self._take(stream, path)
                for leftover in self.root.glob(f".*{PARTIAL}"):
                    leftover.unlink(missing_ok=True)
            except OSError as error:
                raise _fault(f"{path} cannot be written or locked", error, "name an output directory that this user may write") from error
            yield _DirectoryLock()

    def _take(self, stream: TextIO, path: Path) -> None:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockError(
                f"{self.root} is being written by {path.read_text(encoding='utf-8') or 'another client'}",
                hint="let it end or stop it (SIGTERM); a killed client leaves no lock behind",
            ) from None
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}")
        stream.flush()


class _DirectoryLock:
    def check(self) -> None:
        """Held as long as the file is open."""


def _state(found: os.stat_result) -> tuple[int, str]:
    return found.st_size, f"{found.st_size}-{found.st_mtime_ns}"


def _fault(what: str, error: OSError, hint: str) -> BatchError:
    """What a person can do about it: `hint`, or wait, or make room."""
    message = f"{what}: {error.strerror}"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StoreOutageError(message, hint="free space, then run the same command again")
    if error.errno in TRANSIENT:
        return StoreOutageError(message, hint="once the volume works, run the same command again")
    return BatchError(message, hint=hint)


def _raise(error: OSError) -> None:
    raise error


def _sync_directory(path: Path) -> None:
    """A new name is durable only when its directory is."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
