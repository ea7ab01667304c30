"""Command lines: defaults are told, numbers are digits."""

import argparse

import pytest

from components.core.command_line import CommandLine, whole_number


def test_a_default_that_says_something_stands_in_the_help_of_a_command_and_of_its_subcommands():
    top = CommandLine(prog="x")
    added = top.add_subparsers().add_parser("run")
    for parser in (top, added):
        parser.add_argument("--seconds", default=60, help="how long")
        parser.add_argument("--flag", action="store_true", help="or not")
        parser.add_argument("--place", default="/x", help="where; default: here")
    for parser in (top, added):
        said = " ".join(parser.format_help().split())
        assert "how long (default: 60)" in said
        assert "or not (default" not in said
        assert "default: here (default" not in said


@pytest.mark.parametrize("text", ["", "1_0", " 1", "+1", "-1", "1.0", "\u0661", "9" * 19])
def test_what_is_no_number_of_digits_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is no whole number"):
        whole_number(text)
    assert whole_number("007") == int("7")
