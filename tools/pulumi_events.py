"""The engine's event stream: what an update changed, and how to tell a person."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

# Operations that leave an object as it is; everything else in an engine event is a change.
UNCHANGED_OPS = frozenset({"same", "read", "refresh", "discard"})
STACK_TYPE = "pulumi:pulumi:Stack"


def changed_resources(events: list[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    """(operation, URN) of each resource an update changed, in order, from the engine's events; the stack's own pseudo resource never counts."""
    changes = []
    for event in events:
        metadata = event.get("resOutputsEvent", event.get("resourcePreEvent", {})).get("metadata")
        if metadata and metadata["op"] not in UNCHANGED_OPS and metadata["type"] != STACK_TYPE:
            changes.append((metadata["op"], metadata["urn"]))
    return tuple(dict.fromkeys(changes))


def said(events: Iterable[dict[str, Any]]) -> str:
    """All messages of an update: diagnostics, and what policies object to."""
    spoken = (event.get("diagnosticEvent") or event.get("policyEvent") or {} for event in events)
    return "".join(message.get("message", "") for message in spoken)


def lines_of(line: str) -> Iterator[str]:
    """What is worth a person's eye in one line of the stream: each finished change, every warning and error, and the totals."""
    if not line.startswith("{"):
        yield line.rstrip()
        return
    event = json.loads(line)
    metadata = event.get("resOutputsEvent", {}).get("metadata")
    if metadata and metadata["op"] not in UNCHANGED_OPS and metadata["type"] != STACK_TYPE:
        yield f"{metadata['op']} {metadata['type'].rsplit(':', 1)[-1]} {metadata['urn'].rsplit('::', 1)[-1]}"
    diagnostic = event.get("diagnosticEvent", {})
    if "policyEvent" in event or diagnostic.get("severity", "").removeprefix("info#") in {"err", "error", "warning"}:
        yield from filter(None, map(str.rstrip, said([event]).splitlines()))
    if "summaryEvent" in event:
        changes = event["summaryEvent"].get("resourceChanges") or {}
        yield ", ".join(f"{count} {'unchanged' if operation == 'same' else operation}" for operation, count in sorted(changes.items()))
