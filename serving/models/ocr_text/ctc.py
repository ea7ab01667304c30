"""From distributions over characters to text: connectionist temporal classification, read greedily.

The rules are those of rapidocr-onnxruntime 1.4.4 (ch_ppocr_rec/utils.py, CTCLabelDecode): class 0 is the blank, the last one a space, between them the
network's own table; a class that repeats its neighbour is one character; the score is the mean of the characters' probabilities.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

BLANK = 0


class Characters:
    """The characters by class."""

    def __init__(self, table: Sequence[str]) -> None:
        self._characters = ["", *table, " "]

    @classmethod
    def read(cls, path: Path) -> "Characters":
        """One character a line; only a line feed ends one, because the table holds other characters that are taken for line ends."""
        return cls(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))

    def __len__(self) -> int:
        return len(self._characters)

    def decode(self, distributions: np.ndarray) -> tuple[str, float]:
        """Text and score of one line, [steps, classes]; no character at all has the score 0."""
        classes = distributions.argmax(axis=1)
        kept = classes != BLANK
        kept[1:] &= classes[1:] != classes[:-1]
        if not kept.any():
            return "", 0.0
        text = "".join(self._characters[index] for index in classes[kept])
        return text, float(distributions.max(axis=1)[kept].mean())
