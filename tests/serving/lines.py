"""Pictures of lines of text with what they say, drawn with the font that pillow carries: the same on every machine."""

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageDraw, ImageFont

TEXTS = (
    "Triton 2.51",
    "inference",
    "HTTP/1.1 200 OK",
    "maxBatchSize 16",
    "The quick brown fox",
    "jumps over the lazy dog",
    "p99 latency: 12.5 ms",
    "0123456789",
    "2026-11-30 09:15:42",
    "Total 1,234.56 EUR",
    "kubectl get pods",
    "v1 90 %  v2 10 %",
    "Order no. 48213/B",
    "user@example.org",
    "Room 12, second floor",
    "invoice 2041",
    "rollout finished",
    "A B C D E F G",
    "memory limit exceeded",
    "Sunday 7:30 to 19:00",
)
# Size in points, brightness of paper and ink, standard deviation of noise.
LOOKS = ((18, 255, 0, 0), (28, 235, 30, 4), (40, 60, 250, 6))


def png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def lines() -> Iterator[tuple[str, Image.Image]]:
    """Every text in every look."""
    random = np.random.default_rng(1)
    for text in TEXTS:
        for size, paper, ink, noise in LOOKS:
            font = ImageFont.load_default(size)
            left, top, right, bottom = font.getbbox(text)
            margin = size // 3
            drawn = Image.new("L", (int(right - left) + 2 * margin, int(bottom - top) + 2 * margin), paper)
            ImageDraw.Draw(drawn).text((margin - left, margin - top), text, fill=ink, font=font)
            speckled = np.asarray(drawn, dtype=np.float64) + random.normal(0, noise, (drawn.height, drawn.width))
            yield text, Image.fromarray(speckled.clip(0, 255).astype(np.uint8)).convert("RGB")
