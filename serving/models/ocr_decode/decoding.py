"""Images as the recogniser takes them: decoded, 48 pixels high, normalised, padded on the right to one width.

Sizes and rules are those of rapidocr-onnxruntime 1.4.4 (ch_ppocr_rec/text_recognize.py, resize_norm_img): colours in the order blue, green, red, and at
least 320 pixels wide. What is transparent becomes white; that package inverts it or not, after the picture's mean.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from PIL import Image, UnidentifiedImageError

HEIGHT = 48
MIN_WIDTH = 320
# Ten times the usual line; the recogniser's time and memory grow with it.
MAX_WIDTH = 3200
# Pillow unpacks to 4 bytes a pixel, and up to four such pictures are there while one is put on white: 64 MiB, whatever a small file claims to be.
# Reading a JPEG at a fraction of its size (draft mode) would not allow more: of a progressive one libjpeg holds all coefficients, 6 bytes a pixel.
MAX_PIXELS = 4 * 1024 * 1024
FORMATS = ("PNG", "JPEG")
Read = TypeVar("Read")


class ImageError(ValueError):
    """The input is no picture that can be read; the message says why, for whoever sent it."""


def prepare(contents: Sequence[bytes]) -> np.ndarray:
    """One array [number of images, 3, 48, width] of numbers from -1 to 1; 0 is padding. ImageError names the image by its place.

    The width is known from the files' headers, so that no more than one picture is unpacked at a time.
    """
    sizes = [_placed(read_size, place, contents) for place in range(len(contents))]
    ratio = max(MIN_WIDTH / HEIGHT, *(width / height for width, height in sizes))
    width = int(HEIGHT * ratio)
    batch = np.zeros((len(contents), 3, HEIGHT, width), dtype=np.float32)
    for place, row in enumerate(batch):
        picture = _placed(read_image, place, contents)
        scaled = min(width, -(-HEIGHT * picture.width // picture.height))
        row[:, :, :scaled] = _normalised(picture, scaled)
        del picture
    return batch


def read_size(content: bytes) -> tuple[int, int]:
    """Width and height as the file's header has them. ImageError for what is no picture, or too large to be unpacked."""
    with _opened(content) as picture:
        return picture.size


def read_image(content: bytes) -> Image.Image:
    """The picture in red, green and blue. ImageError for anything that is none, or is too large to be unpacked."""
    with _opened(content) as picture:
        picture.load()
        return _in_colour(picture)


@contextmanager
def _opened(content: bytes) -> Iterator[Image.Image]:
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
            _check_size(*picture.size)
            yield picture
    except ImageError:
        raise
    except Exception as error:
        # A hostile file makes pillow raise classes without a common base (OSError, SyntaxError, ValueError, struct.error, zlib.error, MemoryError).
        reason = "it is neither PNG nor JPEG" if isinstance(error, UnidentifiedImageError) else str(error) or type(error).__name__
        raise ImageError(f"the image cannot be read: {reason}") from error


def _placed(read: Callable[[bytes], Read], place: int, contents: Sequence[bytes]) -> Read:
    try:
        return read(contents[place])
    except ImageError as error:
        raise ImageError(f"image {place}: {error}" if len(contents) > 1 else str(error)) from error


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise ImageError(f"the image has {width} x {height} pixels, and at most {MAX_PIXELS} can be read")
    if HEIGHT * width > MAX_WIDTH * height:
        raise ImageError(f"the image is {width} x {height} pixels; a line of text is at most {MAX_WIDTH / HEIGHT:.0f} times as wide as high")


def _in_colour(picture: Image.Image) -> Image.Image:
    if picture.mode in ("I", "I;16", "I;16B"):
        # 16 bits of grey; pillow would cut them off at 255.
        return Image.fromarray((np.asarray(picture, dtype=np.uint32) >> 8).astype(np.uint8)).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        opaque = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", opaque.size, "white"), opaque).convert("RGB")
    return picture.convert("RGB")


def _normalised(picture: Image.Image, width: int) -> np.ndarray:
    """Resized by interpolation between four neighbours, as the network was trained: pillow's own resize would average when it shrinks."""
    whole = (0, 0, picture.width, picture.height)
    resized = picture.transform((width, HEIGHT), Image.Transform.EXTENT, whole, Image.Resampling.BILINEAR)
    values: np.ndarray = np.asarray(resized, dtype=np.float32)[:, :, ::-1].transpose(2, 0, 1) / 127.5 - 1
    return values
