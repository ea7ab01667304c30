"""magika in the pipeline: files of the machine, labelled by what the package itself knows of their extensions."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from serving.optimise.adapters import Adapter, Answerer, Feed, Session, load_module
from serving.optimise.corpus import default_roots, select
from serving.optimise.examples import ExampleSet

PER_EXTENSION = 100
# Most types of text are found under it, so it says nothing.
SILENT_EXTENSIONS = {"txt"}


class MagikaAdapter:
    """The answer is the label; right is every type that the package's own list gives the file's extension."""

    network = "model.onnx"
    fixed: Mapping[str, int] = {"unk__214": 1, "unk__215": 1}

    def __init__(self, directory: Path, roots: Mapping[str, Path] | None = None, per_extension: int = PER_EXTENSION) -> None:
        """`directory`: a version as published, with its code."""
        self._directory = directory
        self._roots = default_roots() if roots is None else roots
        self._per_extension = per_extension
        self._code = load_module(directory / "classifier.py", "magika_classifier")

    def examples(self) -> ExampleSet:
        return select(self._roots, self._labels(), self._per_extension)

    def answerer(self, session: Session) -> Answerer:
        classifier = self._code.Classifier(self._directory, session)
        return lambda contents: [label for label, _ in classifier.classify(contents)]

    def feeds(self, contents: Sequence[bytes]) -> Iterator[Feed]:
        classifier = self._code.Classifier(self._directory)
        for content in contents:
            features = classifier.features(content)
            if features is not None:
                yield {"bytes": features[np.newaxis]}

    def _labels(self) -> dict[str, frozenset[str]]:
        """Types by extension, for extensions of which the network knows at least one type."""
        types = json.loads((self._directory / "content_types_kb.min.json").read_text(encoding="utf-8"))
        settings = json.loads((self._directory / "config.min.json").read_text(encoding="utf-8"))
        known = set(settings["target_labels_space"])
        labels: dict[str, set[str]] = defaultdict(set)
        for label, info in types.items():
            for extension in info["extensions"]:
                labels[extension].add(label)
        return {extension: frozenset(named) for extension, named in labels.items() if named & known and extension not in SILENT_EXTENSIONS}


def adapter(directory: Path) -> Adapter:
    return MagikaAdapter(directory)
