"""YAML without its traps, for files that people write: a scalar is what it looks like, and no key is lost in silence.

The scalars are those of JSON: `no`, `010`, `1:30`, `1_000`, `.inf` and `2024-01-31`, which YAML 1.1 takes for false, 8, 90, 1000, infinity and a
date, are text. Tags, which make one kind of value another, are refused, and aliases that stand for too much: a few lines of them make gigabytes.
"""

import re
from typing import Any

import yaml
from yaml.composer import ComposerError

MAX_DEPTH = 100
# Values in a document, each counted as often as aliases repeat it; the largest model.yaml has some hundreds.
MAX_VALUES = 50_000
TAG = "tag:yaml.org,2002:"
MERGE = f"{TAG}merge"
KEYS = {f"{TAG}str", MERGE}
# Beyond 40 digits, or an exponent of two, nothing is meant as a number. By tag: pattern, and the characters it begins with.
INTEGER = "-?(0|[1-9][0-9]{0,39})"
SCALARS = {
    "merge": ("<<", ["<"]),
    "bool": ("true|false", ["t", "f"]),
    "null": ("~|null|", ["~", "n", ""]),
    "int": (INTEGER, list("-0123456789")),
    "float": (rf"{INTEGER}(\.[0-9]{{1,40}}([eE][-+]?[0-9]{{1,2}})?|[eE][-+]?[0-9]{{1,2}})", list("-0123456789")),
}


class _Loader(yaml.SafeLoader):
    """`SafeLoader` with the scalars above, every key once, no tags, and bounds on depth and size."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._values = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event, before = self.peek_event(), self._values  # type: ignore[no-untyped-call]
        alias = isinstance(event, yaml.AliasEvent)
        if not alias and event.tag is not None:
            raise ComposerError(None, None, f"tag {event.tag}: write the value without it", event.start_mark)
        if self._depth >= MAX_DEPTH:
            raise ComposerError(None, None, f"more than {MAX_DEPTH} levels inside each other", event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if alias and id(node) not in self._sizes:
            raise ComposerError(None, None, f"alias *{event.anchor} stands inside of what it names", event.start_mark)
        self._values += self._sizes[id(node)] if alias else 1
        if self._values > MAX_VALUES:
            raise ComposerError(None, None, f"more than {MAX_VALUES} values, those that aliases repeat included", event.start_mark)
        self._sizes.setdefault(id(node), self._values - before)
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, value in node.value:
            if key.tag not in KEYS:
                raise ComposerError(None, None, "a key is text: put it in quotes", key.start_mark)
            if key.value in seen:
                raise ComposerError(None, None, f"key {key.value!r} stands here twice: keep one", key.start_mark)
            seen.add(key.value)
            if key.tag == MERGE and any(inner.tag == MERGE for each in _merged(value) for inner, _ in each.value):
                # Of a key in all three, PyYAML 6.0.4 then gives the last map the value of the first, not of the second (constructor.py, flatten_mapping).
                raise ComposerError(None, None, "a map that merges another is merged: write out its keys", key.start_mark)
        return node


def _merged(value: yaml.Node) -> list[yaml.MappingNode]:
    nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
    return [node for node in nodes if isinstance(node, yaml.MappingNode)]


# PyYAML looks here, on the class; its stubs say that it is an instance's.
_Loader.yaml_implicit_resolvers = {}
for _name, (_pattern, _first) in SCALARS.items():
    _Loader.add_implicit_resolver(f"{TAG}{_name}", re.compile(f"^(?:{_pattern})$"), _first)


def read(text: str) -> Any:
    """The content of a YAML document: maps, lists, text, numbers, true, false and null. ValueError with reason, line and column."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506  a SafeLoader that takes less
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
