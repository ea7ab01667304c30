"""Errors of the traffic engine."""

from components.errors import PlatformError


class LoadError(PlatformError):
    """A run that cannot be made or cannot be trusted."""


class TargetError(LoadError):
    """The address is not known to be the caller's own, so no traffic is sent to it."""
