"""What the `magika` package does around its network, on a batch of byte strings: features before, label and score after.

Written anew because the package brings a command line and a knowledge base and keeps one session setting for all; the labels are compared with
the package's own in tests/unit/serving/test_magika_parity.py. Names and rules follow magika/magika.py of the wheel named in model.yaml.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime

EMPTY, TEXT, UNKNOWN = "empty", "txt", "unknown"


class Classifier:
    """The network in `directory` (model.onnx, config.min.json, content_types_kb.min.json) with its pre- and post-processing."""

    def __init__(self, directory: Path, session: onnxruntime.InferenceSession | None = None) -> None:
        """With `session`, another form of the network than the one in `directory` answers."""
        settings = json.loads((directory / "config.min.json").read_text(encoding="utf-8"))
        if settings["mid_size"] or settings["use_inputs_at_offsets"]:
            raise ValueError(f"{directory}/config.min.json asks for features from the middle of a file, which this classifier does not extract")
        self._beg_size: int = settings["beg_size"]
        self._end_size: int = settings["end_size"]
        self._block_size: int = settings["block_size"]
        self._padding: int = settings["padding_token"]
        self._min_size: int = settings["min_file_size_for_dl"]
        self._labels: list[str] = settings["target_labels_space"]
        self._thresholds: dict[str, float] = settings["thresholds"]
        self._default_threshold: float = settings["medium_confidence_threshold"]
        self._renamed: dict[str, str] = settings["overwrite_map"]
        types = json.loads((directory / "content_types_kb.min.json").read_text(encoding="utf-8"))
        self._text_labels = {label for label, info in types.items() if info["is_text"]}
        self._session = session or onnxruntime.InferenceSession(directory / "model.onnx", _options(), providers=["CPUExecutionProvider"])

    def classify(self, contents: Sequence[bytes]) -> list[tuple[str, float]]:
        """Label and score of each content; one run of the network for all that need it."""
        results: list[tuple[str, float]] = [(EMPTY, 1.0)] * len(contents)
        rows: list[np.ndarray] = []
        positions: list[int] = []
        for position, content in enumerate(contents):
            features = self.features(content) if len(content) >= self._min_size else None
            if features is not None:
                positions.append(position)
                rows.append(features)
            elif content:
                results[position] = (self._label_of_few_bytes(content), 1.0)
        if rows:
            (scores,) = self._session.run(["target_label"], {"bytes": np.stack(rows)})
            for position, row in zip(positions, scores, strict=True):
                best = int(row.argmax())
                results[position] = (self._label(self._labels[best], float(row[best])), float(row[best]))
        return results

    def features(self, content: bytes) -> np.ndarray | None:
        """First and last bytes without surrounding white space, padded; None when too few are left to say anything."""
        begin = content[: self._block_size].lstrip()[: self._beg_size]
        if len(begin) < self._min_size:
            return None
        end = content[-self._block_size :].rstrip()[-self._end_size :]
        features = np.full(self._beg_size + self._end_size, self._padding, dtype=np.int32)
        features[: len(begin)] = np.frombuffer(begin, dtype=np.uint8)
        features[len(features) - len(end) :] = np.frombuffer(end, dtype=np.uint8)
        return features

    def _label_of_few_bytes(self, content: bytes) -> str:
        try:
            content[: self._block_size].decode("utf-8")
        except UnicodeDecodeError:
            return UNKNOWN
        return TEXT

    def _label(self, predicted: str, score: float) -> str:
        """The predicted label, or the general one when the score is under the label's threshold."""
        label = self._renamed.get(predicted, predicted)
        if score >= self._thresholds.get(predicted, self._default_threshold):
            return label
        return TEXT if label in self._text_labels else UNKNOWN


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    # A server scales by instances; threads of its own would make every request compete with the others for the same cores.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return options
