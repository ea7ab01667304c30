"""Command lines: what an option is when nobody says it stands in its help, and a number is written in digits."""

import argparse
from typing import Any


class _Help(argparse.HelpFormatter):
    """Adds `(default: x)` where there is one that says something, and the help does not say it itself."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        said = action.help
        if not said or "default" in said or action.default in (None, False, "", [], argparse.SUPPRESS):
            return said
        return f"{said} (default: %(default)s)"


class CommandLine(argparse.ArgumentParser):
    """argparse's, with defaults in every help; its subcommands are of this kind too."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"formatter_class": _Help, **settings})


def whole_number(text: str) -> int:
    """Of ASCII digits, up to 18 of them: int() alone takes `1_0`, spaces and digits of every script. Raises argparse's error."""
    if not text.isascii() or not text.isdigit() or len(text) > len(str(10**17)):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)
