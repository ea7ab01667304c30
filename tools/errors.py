"""Errors of the tools, each with the way out."""

from components.errors import PlatformError


class ToolError(PlatformError):
    """A command behind `make` failed in a way a person can act on."""
