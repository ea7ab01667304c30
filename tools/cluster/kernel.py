"""The few Linux system calls that Python 3.11 does not offer: namespaces, mounts and the parent's death signal."""

import ctypes
import os
import signal
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 1 << 19
MS_SHARED = 1 << 20
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(descriptor: int) -> None:
    """Moves the calling (single-threaded) process into the namespace behind `descriptor`."""
    _check(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(0)), "setns")


def mount(source: str, target: Path, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    encoded = [None if value is None else value.encode() for value in (source, str(target), kind, data)]
    arguments = (encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _check(_libc.mount(*arguments), f"mount {source} on {target}")


def die_with_parent() -> None:
    """The kernel sends SIGKILL to the calling process as soon as its parent ends, however that ends."""
    _check(_libc.prctl(ctypes.c_int(_PR_SET_PDEATHSIG), ctypes.c_ulong(signal.SIGKILL)), "prctl")
