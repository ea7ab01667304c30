"""Local container images, built from binaries and wheels: `python -m tools.images`, or `ensure_images()` from code."""

from tools.images.build import ensure_images
from tools.images.recipes import IMAGES, ImageArchive

__all__ = ["IMAGES", "ImageArchive", "ensure_images"]
