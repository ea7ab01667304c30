"""What can go wrong with a repository, as a sentence and a way out."""

from components.errors import PlatformError


class RepositoryError(PlatformError):
    """A repository, or a store that holds one, cannot be read, written or trusted; the message names place, value and reason."""


class AbsentError(RepositoryError):
    """There is nothing at that place."""


class TransientError(RepositoryError):
    """Nothing says that the same request fails again: a connection that broke, a store that is busy."""
