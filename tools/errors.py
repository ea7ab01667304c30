"""Errors of the tools, each with the way out."""


class ToolError(Exception):
    """A failure a person can act on: `message` says what went wrong, `hint` how to go on."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.hint}"
