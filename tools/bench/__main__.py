"""`python -m tools.bench --part serving|platform`: measure, and write the part into docs/bench beside the others."""

import sys

from tools.bench import platform_part, serving_part
from tools.bench.results import write_part
from tools.cli import run_main
from tools.paths import REPO
from tools.target import command_line, target_of

OUTPUT = REPO / "docs" / "bench"
PARTS = ("platform", "serving")


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--part", choices=PARTS, required=True)
    arguments = parser.parse_args()
    part = serving_part.measure_part() if arguments.part == "serving" else platform_part.measure_part(target_of(arguments))
    write_part(OUTPUT, arguments.part, part)
    print(part.to_markdown())
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
