"""What stands around the text recogniser: pictures of every kind in, text out, and a clear sentence for what is no picture."""

import importlib.util
import io
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from serving.model_manifest import MODELS_DIR


def load(model: str, module: str) -> ModuleType:
    """A module of a model's version directory, as the server imports it."""
    spec = importlib.util.spec_from_file_location(f"{model}_{module}", MODELS_DIR / model / f"{module}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


decoding, ctc = load("ocr_decode", "decoding"), load("ocr_text", "ctc")


def encoded(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def picture(mode: str, size: tuple[int, int] = (60, 20)) -> Image.Image:
    """Dark on the left, bright on the right."""
    values = np.tile(np.linspace(0, 255, size[0]), (size[1], 1))
    if mode == "I;16":
        return Image.fromarray((values * 257).astype(np.uint16))
    dither = Image.Dither.NONE if mode == "1" else None
    return Image.fromarray(values.astype(np.uint8)).convert(mode, dither=dither)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(width: int, height: int) -> bytes:
    """A few kilobytes that claim to be a picture of this size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100_000)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_kind_of_png_is_read_with_its_brightness(mode: str) -> None:
    row = decoding.prepare([encoded(picture(mode))])[0, :, 24, :144]
    assert row[:, :20].max() < -0.5
    assert row[:, -20:].min() > 0.5


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_every_kind_of_jpeg_is_read_with_its_brightness(mode: str) -> None:
    row = decoding.prepare([encoded(picture(mode), "JPEG")])[0, :, 24, :144]
    assert row[:, :20].max() < -0.5
    assert row[:, -20:].min() > 0.5


def test_colours_come_as_blue_green_red() -> None:
    pixels = decoding.prepare([encoded(Image.new("RGB", (60, 20), (255, 0, 0)))])
    assert [float(plane) for plane in pixels[0, :, 24, 24]] == [-1, -1, 1]


def test_what_is_transparent_is_white() -> None:
    pixels = decoding.prepare([encoded(Image.new("RGBA", (60, 20), (0, 0, 0, 0)))])
    assert pixels[0, :, :, :144].min() == 1


def test_an_animated_picture_is_its_first_frame() -> None:
    frames = [Image.new("RGB", (60, 20), color) for color in ("black", "white")]
    content = encoded(frames[0], save_all=True, append_images=frames[1:])
    assert decoding.prepare([content])[0, :, :, :144].max() == -1


@pytest.mark.parametrize(
    ("size", "width", "scaled"), [((60, 20), 320, 144), ((1, 1), 320, 48), ((20, 600), 320, 2), ((1000, 48), 1000, 1000), ((641, 96), 320, 320)]
)
def test_a_line_is_48_high_keeps_its_shape_and_is_padded_to_320(size: tuple[int, int], width: int, scaled: int) -> None:
    pixels = decoding.prepare([encoded(Image.new("L", size, 255))])
    assert pixels.shape == (1, 3, 48, width)
    assert (pixels[..., :scaled].min(), np.abs(pixels[..., scaled:]).max(initial=0)) == (1, 0)


def test_pictures_of_one_request_have_the_width_of_the_longest() -> None:
    assert decoding.prepare([encoded(Image.new("L", size)) for size in ((60, 20), (480, 48))]).shape == (2, 3, 48, 480)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "neither PNG nor JPEG"),
        (b"some text, no picture", "neither PNG nor JPEG"),
        (encoded(picture("P"), "GIF"), "neither PNG nor JPEG"),
        (encoded(picture("RGB"))[:-30], "truncated"),
        (encoded(picture("RGB", (600, 200)), "JPEG")[:500], "(?i)truncated"),
        (encoded(picture("RGB")).replace(b"IDAT", b"IDAX"), "cannot be read"),
        (bomb(5_000, 5_000), "5000 x 5000 pixels, and at most 4194304"),
        (bomb(60_000, 60_000), "3600000000 pixels"),
        (bomb(2**31 - 1, 2**31 - 1), "pixels"),
        (encoded(Image.new("L", (4000, 20))), "at most 67 times as wide as high"),
    ],
)
def test_what_is_no_picture_of_a_line_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(decoding.ImageError, match=reason):
        decoding.prepare([content])


# Most pixels and the widest line at once.
LARGEST = (16_640, 250)
# Arguments: folder of the module, a picture, how many of it. Prints by how many MiB the process grew, and how many of them are the answer.
GROWTH = """
import pathlib, resource, sys
sys.path.insert(0, sys.argv[1])
from decoding import prepare
contents = [pathlib.Path(sys.argv[2]).read_bytes()] * int(sys.argv[3])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
answer = prepare(contents)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, answer.nbytes / 2**20)
"""


@pytest.mark.parametrize(("mode", "kind"), [("RGBA", "PNG"), ("I;16", "PNG"), ("RGB", "PNG"), ("CMYK", "JPEG")])
def test_a_batch_of_the_largest_pictures_takes_the_memory_of_one_beside_its_answer(mode: str, kind: str, tmp_path: Path) -> None:
    """Sixteen small files of blank pictures were unpacked side by side: 768 MiB, and the server was gone."""
    file = tmp_path / "largest"
    blank = Image.fromarray(np.zeros(LARGEST[::-1], dtype=np.uint16)) if mode == "I;16" else Image.new(mode, LARGEST)
    file.write_bytes(encoded(blank, kind, progressive=True, subsampling=0))
    command = [sys.executable, "-c", GROWTH, str(MODELS_DIR / "ocr_decode"), str(file), "16"]
    grown, answer = map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    one = 4 * decoding.MAX_PIXELS / 2**20
    assert grown < answer + 4 * one


def test_of_several_pictures_the_bad_one_is_named() -> None:
    with pytest.raises(decoding.ImageError, match="image 1: the image cannot be read"):
        decoding.prepare([encoded(picture("L")), b"nothing"])


@given(place=st.integers(8, 400), value=st.integers(0, 255), kind=st.sampled_from(["PNG", "JPEG"]))
def test_a_file_with_a_changed_byte_is_read_or_refused(place: int, value: int, kind: str) -> None:
    content = bytearray(encoded(picture("RGB", (90, 30)), kind))
    content[min(place, len(content) - 1)] = value
    with suppress(decoding.ImageError):
        assert decoding.prepare([bytes(content)]).shape[2] == 48


def distributions(*classes: int, of: int = 5, probability: float = 0.5) -> np.ndarray:
    rows = np.full((len(classes), of), 0.1, dtype=np.float32)
    rows[np.arange(len(classes)), classes] = probability
    return rows


@pytest.mark.parametrize(
    ("classes", "text"),
    [((1, 1, 1), "a"), ((1, 0, 1), "aa"), ((0, 0), ""), ((1, 2, 4, 3), "ab c"), ((0, 3, 3, 0, 3), "cc")],
)
def test_repetitions_are_one_character_and_blanks_none(classes: tuple[int, ...], text: str) -> None:
    decoded, score = ctc.Characters(["a", "b", "c"]).decode(distributions(*classes))
    assert decoded == text
    assert score == pytest.approx(0.5 if text else 0)


def test_the_table_may_hold_characters_that_others_take_for_line_ends(tmp_path) -> None:
    (tmp_path / "characters.txt").write_text("a\n\x85\n\u2028\nb\n", encoding="utf-8")
    characters = ctc.Characters.read(tmp_path / "characters.txt")
    assert len(characters) == 6
    assert characters.decode(distributions(4, of=6))[0] == "b"
