"""JSON schema of the stack files, for editors: `python -m stacks.schema` writes stacks/schema.json, `--check` fails when it is stale."""

import json
import sys
from pathlib import Path
from typing import Any

from components.core.command_line import CommandLine
from stacks.loader import PROJECT, config_schema

SCHEMA_FILE = Path(__file__).resolve().parent / "schema.json"
# What the engine itself keeps in a stack file (pulumi/pulumi sdk/go/common/workspace/project.go, ProjectStack).
ENGINE_KEYS = ("secretsprovider", "encryptedkey", "encryptionsalt", "environment")


def stack_file_schema() -> dict[str, Any]:
    """Schema of a whole Pulumi.<stack>.yaml: our keys carry the project's namespace, every other namespace but the engine's is refused."""
    root = dict(config_schema())
    definitions = root.pop("$defs")
    config = {
        "type": "object",
        "properties": {f"{PROJECT}:{key}": schema for key, schema in root["properties"].items()},
        "patternProperties": {"^pulumi:": {}},
        "required": [f"{PROJECT}:{key}" for key in root["required"]],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Stack file of {PROJECT}",
        "type": "object",
        "properties": {"config": config, **{key: {} for key in ENGINE_KEYS}},
        "required": ["config"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def render() -> str:
    return json.dumps(stack_file_schema(), indent=2, sort_keys=True) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = CommandLine(prog="python -m stacks.schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when stacks/schema.json is stale")
    check = parser.parse_args(arguments).check
    text = render()
    current = SCHEMA_FILE.read_text(encoding="utf-8") if SCHEMA_FILE.exists() else ""
    if check and text != current:
        print("stacks/schema.json is stale\n  -> run: make schema", file=sys.stderr)
        return 1
    if not check:
        SCHEMA_FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
