"""Builds what is missing; nothing else is done when every archive is there."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.cache import used
from tools.images.buildah import Buildah, check_programs
from tools.images.recipes import IMAGES, ImageArchive, Recipe, recipes
from tools.paths import images_dir
from tools.toolchain import envoy_bootstrap
from tools.toolchain.storage import locked


def ensure_images(
    binary: Callable[[str], Path], *, names: Iterable[str] = IMAGES, bootstrap: Callable[[], Path] = envoy_bootstrap
) -> dict[str, ImageArchive]:
    """Image name -> reference and archive, for every one of `names`.

    `binary` is `Toolchain.path`. An interrupted run leaves whole archives and cached layers, and the next goes on from there. Raises ToolError.
    """
    wanted = recipes(binary, bootstrap, names)
    missing = [recipe for recipe in wanted if not archive_of(recipe).path.exists()]
    if missing:
        check_programs()
        with locked(images_dir() / "build", "container images"):
            for recipe in missing:
                _ensure_archive(recipe)
    for recipe in wanted:
        used(archive_of(recipe).path)
    return {recipe.name: archive_of(recipe) for recipe in wanted}


def archive_of(recipe: Recipe) -> ImageArchive:
    """Where the image of `recipe` is, or will be."""
    return ImageArchive(recipe.ref, images_dir() / f"{recipe.name}-{recipe.key}.tar")


def _ensure_archive(recipe: Recipe) -> None:
    archive = archive_of(recipe)
    if not archive.path.exists():
        buildah = Buildah(images_dir() / "store")
        build(recipe, buildah)
        buildah.export(archive.ref, archive.path)


def build(recipe: Recipe, buildah: Buildah) -> None:
    """Build `recipe` into the store, its base first."""
    if buildah.has(recipe.ref):
        return
    if isinstance(recipe.base, Recipe):
        build(recipe.base, buildah)
    # Beside the archives, so that binaries can be hard-linked into it; at a fixed place, so that a killed run's is replaced.
    context = images_dir() / "context"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir(parents=True)
    try:
        recipe.prepare(context)
        buildah.build(recipe.ref, recipe.containerfile, context, recipe.base_ref)
    finally:
        shutil.rmtree(context)
