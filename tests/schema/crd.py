"""Objects of custom kinds against the OpenAPI schema in their own definitions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator


class CustomResources:
    """The definitions of one file; raises AssertionError for an object that a definition does not allow."""

    def __init__(self, file: Path) -> None:
        with file.open(encoding="utf-8") as text:
            definitions = [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]
        self._schemas = {
            (f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"]): closed(version["schema"]["openAPIV3Schema"])
            for definition in definitions
            for version in definition["spec"]["versions"]
            if version["served"]
        }

    def check(self, manifest: Mapping[str, Any]) -> None:
        """Every fault at once, with its path."""
        kind = (manifest["apiVersion"], manifest["kind"])
        assert kind in self._schemas, f"no definition serves {kind}"
        # What every object has is checked by the API server's own schema, and not listed in each definition.
        body = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
        faults = [f"{error.json_path}: {error.message}" for error in Draft202012Validator(self._schemas[kind]).iter_errors(body)]
        assert not faults, "\n".join(faults)


def closed(schema: Any) -> Any:
    """The schema with unknown keys refused: a cluster drops them without a word, so that a misspelt key would just do nothing."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    # Only where an object's keys are listed; branches of oneOf and anyOf list a part of them, and "properties" may be a key's name itself.
    listed = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if listed and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        result["additionalProperties"] = False
    return result
