"""What each stack registers, reviewed like code: after a wanted change, `pytest tests/golden --snapshot-update` and read the difference."""

from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.documents import ENVIRONMENTS, built, document
from tests.engine import Registered


class YamlFile(SingleFileSnapshotExtension):
    """One YAML file per stack."""

    _write_mode = WriteMode.TEXT
    file_extension = "yaml"

    def serialize(self, data: Any, **_: Any) -> str:
        return yaml.safe_dump(data, width=160, sort_keys=True)


def name_of(urn: str) -> str:
    return urn.rpartition("::")[2]


def whole(value: Any) -> Any:
    """Numbers as they were written: the engine's protocol knows floats only."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def entry(resource: Registered) -> dict[str, Any]:
    """A resource as a reader wants it: what it is, where it hangs, what it waits for, what is sent."""
    shown = {
        "type": resource.type,
        "parent": None if "::pulumi:pulumi:Stack::" in resource.parent else name_of(resource.parent),
        "after": sorted(map(name_of, resource.dependencies)),
        "timeout": resource.update_timeout,
        "inputs": whole(resource.inputs),
    }
    return {key: value for key, value in shown.items() if value}


@pytest.mark.parametrize("stack", ENVIRONMENTS)
def test_a_stack_registers_what_was_reviewed(stack: str, snapshot: SnapshotAssertion) -> None:
    recording = built(document(stack), stack)
    assert {resource.name: entry(resource) for resource in recording.resources} == snapshot(extension_class=YamlFile)
