"""`python -m tools.images build|list|load`: exit code 0 when done, 1 with a sentence when not."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from components.core.command_line import CommandLine
from tools.cli import run_main
from tools.cluster import load_images
from tools.cluster.spec import Layout
from tools.cluster.state import State
from tools.errors import ToolError
from tools.images.build import build, ensure_images
from tools.images.buildah import Buildah, check_programs
from tools.images.load import k3d_command, kind_command, registry_command, registry_ref, run
from tools.images.recipes import IMAGES, OPTIONAL_IMAGES, PREFIX, ImageArchive, triton
from tools.images.wheels import IMAGE_PYTHON
from tools.paths import images_dir
from tools.toolchain import ensure

MIB = 2**20
TOOLCHAIN_GROUPS = ("cluster", "images")


def image_name(value: str) -> str:
    if value not in (*IMAGES, *OPTIONAL_IMAGES):
        raise argparse.ArgumentTypeError(f"there is no image {value!r}; images: {', '.join((*IMAGES, *OPTIONAL_IMAGES))}")
    return value


def parser() -> argparse.ArgumentParser:
    top = CommandLine(prog="python -m tools.images", description="Container images from binaries and wheels.")
    commands = top.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build", help="build what is missing")
    make.add_argument(
        "names", nargs="*", type=image_name, metavar="image", help=f"of: {', '.join((*IMAGES, *OPTIONAL_IMAGES))}; default: {', '.join(IMAGES)}"
    )
    make.add_argument("--base", help="build the serving image on this image instead (NVIDIA's Triton image, by digest) and keep it in the store")
    make.add_argument("--python", default=IMAGE_PYTHON, help="version of the Python in --base; default: %(default)s")
    commands.add_parser("list", help="archives there are, of this and of earlier states of their inputs")
    load = commands.add_parser("load", help="bring the images to a cluster")
    target = load.add_mutually_exclusive_group(required=True)
    target.add_argument("--cluster", metavar="NAME", help="local cluster")
    target.add_argument("--kind", metavar="NAME", help="kind cluster")
    target.add_argument("--k3d", metavar="NAME", help="k3d cluster")
    target.add_argument("--registry", metavar="HOST", help="registry to push to, with a path if need be")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.command == "build" and options.base:
        check_programs()
        recipe = triton(options.base, options.python)
        build(recipe, Buildah(images_dir() / "store"))
        print(recipe.ref)
        return 0
    if options.command == "list":
        for path in sorted(images_dir().glob("*.tar")):
            name, _, key = path.stem.rpartition("-")
            print(f"{PREFIX}/{name}:{key}  {path.stat().st_size // MIB} MiB  {path}")
        return 0
    images = ensure_images(_program, names=getattr(options, "names", None) or IMAGES)
    if options.command == "load":
        _load(options, list(images.values()))
    return 0


def _program(name: str) -> Path:
    """A program of the toolchain, found or built when an image first needs one."""
    return ensure(TOOLCHAIN_GROUPS).path(name)


def _load(options: argparse.Namespace, images: list[ImageArchive]) -> None:
    if options.cluster:
        state = State.read(Layout.of(options.cluster))
        if state is None:
            raise ToolError(f"there is no local cluster {options.cluster!r}", f"python -m tools.cluster start --name {options.cluster}")
        load_images(state.cluster, [image.path for image in images])
        return
    for image in images:
        if options.kind:
            run(kind_command(options.kind, image))
        elif options.k3d:
            run(k3d_command(options.k3d, image))
        else:
            run(registry_command(options.registry, image))
            print(registry_ref(options.registry, image))


if __name__ == "__main__":
    sys.exit(run_main(main))
