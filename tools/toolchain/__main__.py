"""`python -m tools.toolchain [ensure|status|path NAME]`."""

import argparse
import sys

from components.core.command_line import CommandLine
from tools.errors import ToolError
from tools.toolchain.assembly import DEFAULT_GROUPS, ensure, status
from tools.toolchain.catalog import BY_NAME
from tools.toolchain.debian import PACKAGES, ensure_packages, missing_packages


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        if options.command == "status":
            return _status()
        if options.command == "path":
            print(ensure().path(options.name))
            return 0
        ensure_packages()
        toolchain = ensure(options.group or DEFAULT_GROUPS)
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    for name, place in sorted(toolchain.binaries.items()):
        print(f"{name:28} {place}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = CommandLine(prog="python -m tools.toolchain", description="Find or build the programs of the platform.")
    commands = parser.add_subparsers(dest="command")
    build = commands.add_parser("ensure", help="find or build what is missing (the default)")
    build.add_argument("--group", action="append", choices=sorted(BY_NAME), help="only this group of programs (may be given more than once)")
    commands.add_parser("status", help="say where each program is; build nothing")
    path = commands.add_parser("path", help="print where one program is")
    path.add_argument("name")
    parser.set_defaults(command="ensure", group=None)
    return parser


def _status() -> int:
    """Exit code 1 when something would have to be installed or built."""
    missing = missing_packages(PACKAGES)
    places = status()
    for name, place in sorted(places.items()):
        print(f"{name:28} {place or 'not built'}")
    for package in missing:
        print(f"{package:28} not installed")
    return 1 if missing or None in places.values() else 0


if __name__ == "__main__":
    sys.exit(main())
