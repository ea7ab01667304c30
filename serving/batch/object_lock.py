"""The right to write below an object prefix: an object that its holder renews, made and taken over by conditional writes only."""

import json
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from typing import Protocol

from serving.batch.errors import BatchError, LockError
from serving.batch.storage import LOCK

# Renewals within one lease; a holder that missed all of them is dead.
RENEWALS_PER_LEASE = 3
# Both times behind an object's age are whole seconds (HTTP dates): a lease is over for others only when it is over for its holder.
CLOCK_SECONDS = 1.0


class ConditionalObjects(Protocol):
    """What a lock needs of the store."""

    def put(self, name: str, content: bytes, **condition: str) -> str | None:
        """The new ETag; None when the condition does not hold."""

    def stored(self, name: str) -> tuple[bytes, str, float]:
        """Content, ETag and age in seconds by the store's own clock; an empty ETag without such an object."""

    def delete(self, name: str) -> None: ...


class ObjectLock:
    """Not the guard of the answers (parts are created conditionally, one number after the other), but what stops a second client before it works."""

    def __init__(self, store: ConditionalObjects, lease_seconds: float) -> None:
        self._store, self._lease_seconds = store, lease_seconds
        self._id = uuid.uuid4().hex
        self._renewal = 0
        self._etag = ""
        self._renewed = 0.0
        self._lost = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lock", daemon=True)

    def acquire(self) -> None:
        """Take the lock, if need be after the lease of a dead holder. LockError when a living one has it; BatchError when the store knows no conditions."""
        etag = self._store.put(LOCK, self._content(), IfNoneMatch="*") or self._take_over()
        if self._store.put(LOCK, self._content(), IfNoneMatch="*") is not None:
            raise BatchError(
                f"{self._store} ignores `If-None-Match`: two clients could write the same part",
                hint="use a store with conditional writes, or an output directory",
            )
        self._etag, self._renewed = etag, time.monotonic()
        self._thread.start()

    def check(self) -> None:
        """Raise LockError once another client may hold the lock."""
        silent = time.monotonic() - self._renewed
        if self._lost or silent > self._lease_seconds:
            reason = self._lost or f"could not be renewed for {silent:.0f} s"
            raise LockError(f"the lock of {self._store} {reason}", hint="run the same command again; it goes on from what is stored")

    def release(self) -> None:
        """Let go, unless it belongs to another by now. Raises nothing."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        # A store that is away now keeps the lock until its lease is over; what was answered is stored, and the run is what it is.
        with suppress(BatchError):
            if self._id.encode() in self._store.stored(LOCK)[0]:
                self._store.delete(LOCK)

    def _content(self) -> bytes:
        """Another one each time, so that a renewal shows in the ETag."""
        self._renewal += 1
        return json.dumps({"owner": self._id, "process": os.getpid(), "host": socket.gethostname(), "renewal": self._renewal}).encode()

    def _take_over(self) -> str:
        """Wait until the holder renews (it lives: LockError) or its lease is over."""
        holder, seen, age = self._store.stored(LOCK)
        while (left := self._lease_seconds + CLOCK_SECONDS - age) > 0:
            time.sleep(min(self._lease_seconds / RENEWALS_PER_LEASE / 2, left))
            holder, etag, age = self._store.stored(LOCK)
            if etag != seen:
                break
        else:
            condition = {"IfMatch": seen} if seen else {"IfNoneMatch": "*"}
            if taken := self._store.put(LOCK, self._content(), **condition):
                return taken
        raise LockError(
            f"{self._store} is being written by another client: {holder.decode(errors='replace') or 'it has just ended'}",
            hint=f"let it end or stop it (SIGTERM); the lock of a killed one ends after {self._lease_seconds:g} s",
        )

    def _keep(self) -> None:
        while not self._stop.wait(self._lease_seconds / RENEWALS_PER_LEASE):
            try:
                etag = self._store.put(LOCK, self._content(), IfMatch=self._etag) or self._repeated()
            except BatchError:
                continue  # `check` counts the silence
            if etag is None:
                self._lost = "was taken over by another client"
                return
            self._etag, self._renewed = etag, time.monotonic()

    def _repeated(self) -> str | None:
        """The ETag of a renewal that had arrived: its answer was lost, and boto3's next attempt met it."""
        content, etag, _ = self._store.stored(LOCK)
        return etag if self._id.encode() in content else None
