"""Errors of the traffic engine."""


class LoadError(Exception):
    """A run that cannot be made or cannot be trusted: `message` says what and why, `hint` how to go on."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.hint}"


class TargetError(LoadError):
    """The address is not known to be the caller's own, so no traffic is sent to it."""
