"""What is wrong with a stack file, in words: one line per fault with key path, value, reason and way out."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from components.core.faults import Fault, FaultsError
from stacks.key_paths import Location, allowed_keys, closest, dotted, keys_of, required_below, value_at

HIDDEN = "[secret]"
MAX_SHOWN = 100
LONG_WORD = re.compile(rf"\S{{{MAX_SHOWN + 1},}}")
# Of a URI, everything a server takes for name and password.
PASSWORD = re.compile(r"://[^/?#\s]*@")
UNSHOWN = "not a valid value (the reason would show it, and a key is secret)"
IN_THE_FILE = "correct it in the stack file"
NUMBER_TYPES = {"int_type": "int", "float_type": "float", "bool_type": "bool"}
MISSING_TYPES = {"missing", "union_tag_not_found"}
TAG_TYPES = {"union_tag_invalid", "union_tag_not_found"}
OBJECT_TYPES = {"model_type", "model_attributes_type", "dict_type", "list_type", "tuple_type"}
# Faults whose sentence speaks of the rule alone, never of the value.
SILENT_ABOUT_VALUE = {
    *NUMBER_TYPES,
    *OBJECT_TYPES,
    "string_type",
    "greater_than",
    "greater_than_equal",
    "less_than",
    "less_than_equal",
    "union_tag_invalid",
}


@dataclass(frozen=True)
class Problem:
    """One fault: where, what stands there (None where nothing does), why it cannot be, how to go on."""

    path: str
    value: str | None
    reason: str
    way_out: str

    def __str__(self) -> str:
        where = self.path if self.value is None else f"{self.path} = {self.value}"
        return f"{where}: {LONG_WORD.sub(_cut_word, self.reason)}\n      -> {self.way_out}"


def of_validation(error: ValidationError, document: Mapping[str, Any], schema: Mapping[str, Any], secret: frozenset[str]) -> list[Problem]:
    """Every fault pydantic found; values below a top-level key in `secret` are not shown."""
    problems: list[Problem] = []
    for detail in error.errors(include_url=False):
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, FaultsError):
            problems += [_between_keys(fault, keys_of(detail["loc"], document), document, secret) for fault in cause.faults]
        else:
            problems.append(_problem(detail, document, schema, hidden=bool(detail["loc"]) and detail["loc"][0] in secret))
    return problems


def of_faults(faults: Iterable[Fault], document: Mapping[str, Any], secret: frozenset[str]) -> list[Problem]:
    """Faults of the whole file, found after pydantic was content."""
    return [_between_keys(fault, (), document, secret) for fault in faults]


def _between_keys(fault: Fault, above: Location, document: Mapping[str, Any], secret: frozenset[str]) -> Problem:
    """A rule between keys may quote any of them, so its words are shown only where no key is secret."""
    keys = [*above, *fault.keys]
    if secret:
        return Problem(dotted(keys), None, UNSHOWN, IN_THE_FILE)
    return Problem(dotted(keys), _shown(keys, document), fault.reason, fault.way_out)


def _problem(detail: ErrorDetails, document: Mapping[str, Any], schema: Mapping[str, Any], *, hidden: bool) -> Problem:
    keys = keys_of(detail["loc"], document)
    if detail["type"] in TAG_TYPES:
        # The key that decides what the others may be; pydantic names the map around it.
        keys.append(detail["ctx"]["discriminator"].strip("'"))
    shown = None if detail["type"] in {*MISSING_TYPES, "extra_forbidden"} else _shown(keys, document)
    return Problem(
        path=dotted(keys) or "(the whole file)",
        value=HIDDEN if hidden and shown is not None else shown,
        reason=_reason(detail, hidden=hidden),
        way_out=_way_out(detail, keys, schema),
    )


def _shown(keys: Location, document: Mapping[str, Any]) -> str | None:
    """Scalars only: a whole mapping says less than the reason does."""
    try:
        value = value_at(keys, document)
    except (KeyError, IndexError):
        return None
    return None if isinstance(value, Mapping | list) else _cut(PASSWORD.sub("://...@", json.dumps(value, ensure_ascii=False)))


def _cut(text: str) -> str:
    """A message stays readable, and on few lines, whatever was pasted into the file."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text)} characters)"


def _cut_word(word: re.Match[str]) -> str:
    return _cut(word[0])


def _reason(detail: ErrorDetails, *, hidden: bool) -> str:
    """The sentence of pydantic; of a validator of ours, its own text, which may quote the value and is therefore not shown for a secret."""
    if detail["type"] == "extra_forbidden":
        return "unknown key"
    if detail["type"] in MISSING_TYPES:
        return "required key is missing"
    if detail["type"] == "union_tag_invalid":
        return f"is none of {detail['ctx']['expected_tags']}"
    if hidden and detail["type"] not in SILENT_ABOUT_VALUE:
        return UNSHOWN
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    text = detail["msg"]
    return text[:1].lower() + text[1:]


def _way_out(detail: ErrorDetails, keys: Location, schema: Mapping[str, Any]) -> str:
    path = dotted(keys)
    kind = detail["type"]
    if kind == "extra_forbidden":
        return unknown_key_hint(str(keys[-1]), allowed_keys(keys[:-1], schema))
    if kind in MISSING_TYPES:
        return "set it: " + " and ".join(f"pulumi config set --path {dotted(each)} <value>" for each in required_below(keys, schema))
    if kind in NUMBER_TYPES and isinstance(detail["input"], str):
        return f"write the value without quotes; on the command line: pulumi config set --path --type {NUMBER_TYPES[kind]} {path} <value>"
    if kind == "string_type":
        return f"put the value in quotes; on the command line: pulumi config set --path --type string {path} <value>"
    if kind in OBJECT_TYPES or (isinstance(detail["input"], Mapping | list) and kind not in TAG_TYPES) or not keys or "[key]" in detail["loc"]:
        known = allowed_keys(keys, schema) if kind in OBJECT_TYPES else []
        return f"write keys below it: {', '.join(known)}" if known else IN_THE_FILE
    return f"pulumi config set --path {path} <value>"


def unknown_key_hint(name: str, known: list[str]) -> str:
    """The likely meaning of a misspelt key, and what may stand there."""
    if not known:
        return "remove it"
    meant = closest(name, known)
    return (f"did you mean {meant}? " if meant else "") + f"known keys here: {', '.join(known)}"
