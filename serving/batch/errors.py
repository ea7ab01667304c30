"""Errors of the batch client.

BatchError              something a person can act on; nothing answered so far is lost
├── LockError           another client writes to the same output
├── OutageError         the model server answers nothing for too long
└── StoreOutageError    the place of inputs or answers does not work at the moment
ReadError               one input cannot be read as it was listed; recorded for that item, the rest goes on
"""

from components.errors import PlatformError


class BatchError(PlatformError):
    """The run cannot begin or go on; what was answered before stays."""


class LockError(BatchError):
    """Another client writes to the same output, or took it over."""


class OutageError(BatchError):
    """The server answers nothing; the same command goes on later."""


class StoreOutageError(BatchError):
    """A connection that broke, a store that is busy, a disk that is full: the same command goes on later."""


class ReadError(Exception):
    """An input that is gone, changed since it was listed, or unreadable."""
