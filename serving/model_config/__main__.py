"""A config.pbtxt from elsewhere in this project's words: `python -m serving.model_config FILE`.

Prints YAML: what belongs into a model.yaml, what into a stack file under models.<name>, and as comments what has no place in either.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from components.core.command_line import CommandLine
from components.core.spec import Spec
from components.errors import ManifestError, PlatformError
from serving.model_config.read import ReadConfig, read_config


def main(arguments: list[str] | None = None) -> int:
    parser = CommandLine(prog="python -m serving.model_config", description=__doc__)
    parser.add_argument("file", type=Path, help="a config.pbtxt")
    path = parser.parse_args(arguments).file
    try:
        print(described(read_config(_text(path))), end="")
    except PlatformError as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 1
    return 0


def described(read: ReadConfig) -> str:
    """The YAML; keys that have their default are left out."""
    facts = read.facts
    of_model: dict[str, Any] = {"name": facts.name, "format": read.format, "signature": _values(facts.signature)}
    if facts.decoupled:
        of_model["decoupled"] = True
    if facts.parameters:
        of_model["parameters"] = dict(facts.parameters)
    if facts.versions or facts.steps:
        of_model["versions"] = [{"version": version} | _steps(read) for version in facts.versions or (1,)]
    parts = ["# model.yaml; still to be said: description, licence, check, loadBudgetSeconds, memoryMib and files of each version", _yaml(of_model)]
    parts += ["# stack file, under models.<name>", _yaml(_values(read.serving))]
    if read.unexpressed:
        parts += ["# not said, because there is no key for it:", *(f"#   {entry}" for entry in read.unexpressed)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _steps(read: ReadConfig) -> dict[str, Any]:
    return {"steps": [_values(step) for step in read.facts.steps]} if read.facts.steps else {}


def _values(spec: Spec) -> dict[str, Any]:
    return spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _yaml(values: dict[str, Any]) -> str:
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"cannot be read: {error}", hint="name a config.pbtxt") from error


if __name__ == "__main__":
    raise SystemExit(main())
