"""What a model is tried on: examples with the answers that count as right, in two sets that share nothing."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Example:
    """One input. `name` says where it is from, `kind` what it is; `expected` holds every answer that is right."""

    name: str
    kind: str
    content: bytes
    expected: frozenset[str]


@dataclass(frozen=True)
class ExampleSet:
    """`calibration` may shape a variant, `evaluation` judges it. `recipe` says in a sentence how the two were made."""

    recipe: str
    calibration: Sequence[Example]
    evaluation: Sequence[Example]

    @cached_property
    def sha256(self) -> str:
        """Of every name, content and right answer, in order."""
        digest = hashlib.sha256()
        for example in (*self.calibration, *self.evaluation):
            content = hashlib.sha256(example.content).hexdigest()
            digest.update(f"{example.name}\0{content}\0{' '.join(sorted(example.expected))}\n".encode())
        return digest.hexdigest()

    def kinds(self) -> dict[str, int]:
        """Examples of the evaluation by kind, most frequent first."""
        return dict(sorted(Counter(example.kind for example in self.evaluation).items(), key=lambda item: (-item[1], item[0])))

    def sources(self) -> dict[str, int]:
        """Examples of the evaluation by the root they are from."""
        return dict(sorted(Counter(example.name.partition("/")[0] for example in self.evaluation).items()))


def spread(items: Sequence[Item], count: int | None) -> Sequence[Item]:
    """`count` of the items at equal distances, since they are in order; all for None, or when there are no more."""
    if count is None or count >= len(items):
        return items
    return [items[index * len(items) // count] for index in range(count)]
