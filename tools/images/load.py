"""Brings images to a cluster of the user's own: kind and k3d take archives, every other cluster pulls from a registry."""

import subprocess
from collections.abc import Iterable, Mapping

from tools.errors import ToolError
from tools.images.buildah import Buildah
from tools.images.recipes import PREFIX, ImageArchive
from tools.paths import images_dir

# How kind and k3d name the kube contexts that they make.
KIND_CONTEXT, K3D_CONTEXT = "kind-", "k3d-"


def kind_command(cluster: str, image: ImageArchive) -> list[str]:
    return ["kind", "load", "image-archive", str(image.path), "--name", cluster]


def k3d_command(cluster: str, image: ImageArchive) -> list[str]:
    return ["k3d", "image", "import", str(image.path), "--cluster", cluster]


def registry_ref(registry: str, image: ImageArchive) -> str:
    """Where the image goes in `registry` (host, port, and path if any); the tag, which is its content, stays."""
    return f"{registry.rstrip('/')}/{image.ref.removeprefix('localhost/')}"


def registry_command(registry: str, image: ImageArchive) -> list[str]:
    """A push straight from the archive: the store may have been cleared since."""
    return Buildah(images_dir() / "store").command("push", f"docker-archive:{image.path}", f"docker://{registry_ref(registry, image)}")


def context_commands(context: str, images: Iterable[ImageArchive]) -> list[list[str]]:
    """The commands that load `images` into the cluster of a kube context. Raises ToolError for one that takes no archives."""
    if context.startswith(KIND_CONTEXT):
        return [kind_command(context.removeprefix(KIND_CONTEXT), image) for image in images]
    if context.startswith(K3D_CONTEXT):
        return [k3d_command(context.removeprefix(K3D_CONTEXT), image) for image in images]
    raise ToolError(
        f"context {context!r} is neither kind's nor k3d's, so its nodes pull from a registry and {PREFIX}/... is none",
        "name a registry they can pull from: make up CONTEXT=... REGISTRY=<host>",
    )


def check_way(context: str, registry: str | None) -> None:
    """Raise ToolError when there is no way to bring images to the cluster of `context`."""
    if registry is None:
        context_commands(context, [])


def bring_images(context: str, images: Mapping[str, ImageArchive], registry: str | None) -> dict[str, str]:
    """Push `images` to `registry`, or load them into the kind or k3d cluster behind `context`; their references there, by name. Raises ToolError."""
    if registry is not None:
        for image in images.values():
            run(registry_command(registry, image))
        return {name: registry_ref(registry, image) for name, image in images.items()}
    for command in context_commands(context, images.values()):
        run(command)
    return {name: image.ref for name, image in images.items()}


def run(command: list[str]) -> None:
    """Run `command` with its output for the user. Raises ToolError when it is not installed or fails."""
    try:
        status = subprocess.run(command, check=False).returncode
    except FileNotFoundError:
        raise ToolError(f"{command[0]} is not installed", f"install {command[0]}, or use --registry HOST") from None
    if status:
        raise ToolError(f"`{' '.join(command)}` ended with {status}", "correct what it says above and run the same command again")
