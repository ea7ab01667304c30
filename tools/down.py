"""`make down`: takes the platform down. The local cluster goes with all its state; on the user's own cluster exactly the stack's objects go."""

import shutil
import sys

from tools import cluster
from tools.cli import run_main
from tools.environment import local_stack, variables
from tools.target import Target, command_line, target_of
from tools.toolchain import ensure


def down(target: Target) -> None:
    """Leave nothing of ours on the target. The cache of programs and images stays."""
    if target.cluster is not None:
        cluster.delete(target.cluster)
        print(f"{target.context}: gone")
        return
    if target.folder.exists():
        toolchain = ensure()
        stack = local_stack(variables(target, toolchain), toolchain)
        # An update that was killed has left its lock, one that failed early no stack at all.
        stack.ensure()
        stack.destroy()
        shutil.rmtree(target.folder)
    print(f"{target.context}: nothing of the platform is left")


def main() -> int:
    down(target_of(command_line(__doc__).parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
