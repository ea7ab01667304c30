"""Key paths as the user writes them, and the keys that may stand there."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

Location = Sequence[str | int]


def keys_of(location: Location, document: object) -> list[str | int]:
    """The steps of a pydantic error location that are keys in the document.

    pydantic puts the tag of a union, the name of a union's member and `[key]` between the keys; these are in no file. The last step of a
    location is kept when it is a key of a mapping, there or missing.
    """
    keys: list[str | int] = []
    node: Any = document
    for position, step in enumerate(location):
        last = position == len(location) - 1
        there = step in node if isinstance(node, Mapping) else isinstance(node, list) and isinstance(step, int) and step < len(node)
        if there:
            node = node[step]
        elif not (last and isinstance(node, Mapping) and step != "[key]"):
            continue
        keys.append(step)
    return keys


def dotted(keys: Location) -> str:
    """`models.magika.canary.weight`, `names[0]`, `models["a.b"]`: the spelling of `pulumi config set --path`."""
    text = ""
    for key in keys:
        if isinstance(key, int):
            text += f"[{key}]"
        elif "." in key or '"' in key:
            text += f'["{key}"]'
        else:
            text += f".{key}" if text else key
    return text


def value_at(keys: Location, document: Any) -> object:
    """The value at a path that exists; KeyError or IndexError where it does not, as below a word that stands for keys (`batching: throughput`)."""
    for key in keys:
        has_keys = isinstance(document, Mapping | list)
        if not has_keys:
            raise KeyError(key)
        document = document[key]
    return document


def allowed_keys(keys: Location, schema: Mapping[str, Any]) -> list[str]:
    """The keys that a JSON schema knows for the mapping at `keys`; of a union, those of every member."""
    return sorted({name for node in _nodes_at(keys, schema) for name in node.get("properties", {})})


def required_below(keys: Location, schema: Mapping[str, Any]) -> list[Location]:
    """Paths of the values to set for what is missing at `keys`: itself, or the keys that it needs; of a union, which may choose, itself."""
    nodes = _nodes_at(keys, schema)
    if len(nodes) != 1 or not nodes[0].get("required"):
        return [keys]
    return [path for name in nodes[0]["required"] for path in required_below([*keys, name], schema)]


def closest(name: str, known: Sequence[str]) -> str | None:
    """The known key that `name` most likely means, case apart."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    matches = get_close_matches(name.lower().replace("_", "").replace("-", ""), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def _nodes_at(keys: Location, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    nodes = list(_members(schema, schema))
    for key in keys:
        nodes = [member for node in nodes for member in _members(_child(node, key), schema)]
    return nodes


def _child(node: Mapping[str, Any], key: str | int) -> Mapping[str, Any]:
    if isinstance(key, int):
        return node.get("items") or {}
    extra = node.get("additionalProperties")
    return node.get("properties", {}).get(key) or (extra if isinstance(extra, Mapping) else {})


def _members(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema itself, with references followed and unions taken apart."""
    if "$ref" in node:
        yield from _members(root["$defs"][node["$ref"].rsplit("/", 1)[1]], root)
    for union in ("anyOf", "oneOf", "allOf"):
        for member in node.get(union, ()):
            yield from _members(member, root)
    if "properties" in node or "additionalProperties" in node or "items" in node:
        yield node
