"""`eval "$(make env)"`: what a shell needs for pulumi and kubectl to work on the platform."""

import sys

from tools.cli import run_main
from tools.environment import shell_lines
from tools.target import command_line, target_of
from tools.toolchain import ensure


def main() -> int:
    print(shell_lines(target_of(command_line(__doc__).parse_args()), ensure()))
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
