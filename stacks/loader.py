"""The only reader of Pulumi's configuration: from the stack file to a validated `StackConfig`, or one error that names every fault."""

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import pulumi
from pulumi.runtime import config as pulumi_config
from pydantic import ValidationError

from components.errors import ConfigError
from serving.registry.errors import RegistryError
from serving.registry.view import RegistryView
from stacks.config import StackConfig
from stacks.problems import UNSHOWN, Problem, of_faults, of_validation, unknown_key_hint
from stacks.registry import registry_view
from stacks.rules_versions import registry_faults

PROJECT = "inference-platform"
ENGINE_NAMESPACE = "pulumi"
ViewOf = Callable[[StackConfig], RegistryView | None]


@functools.cache
def config_schema() -> dict[str, Any]:
    """JSON schema of the project's keys, without the namespace prefix."""
    return StackConfig.model_json_schema(by_alias=True)


def load(stack: str, raw: Mapping[str, object], secret: frozenset[str] = frozenset()) -> StackConfig:
    """Validate the configuration of `stack`.

    `raw` holds every key Pulumi knows, with its namespace (`inference-platform:models`); a structured value is JSON text, as Pulumi hands it
    over. `secret` names the keys (in the same spelling) whose values are never shown. Raises ConfigError with all faults at once.
    """
    problems = [_foreign(key) for key in sorted(raw) if _namespace(key) not in {PROJECT, ENGINE_NAMESPACE}]
    own = _own(raw)
    detached = sorted(key for key in own if "." in key)
    problems += [_detached(key, own) for key in detached]
    document = {key: value for key, value in own.items() if key not in detached}
    try:
        config = StackConfig.model_validate_json(json.dumps(document), context={"stack": stack}, by_alias=True, by_name=False)
    except ValidationError as error:
        raise _error(stack, problems + of_validation(error, document, config_schema(), frozenset(map(_bare, secret)))) from None
    if problems:
        raise _error(stack, problems)
    return config


def load_from_pulumi() -> StackConfig:
    """The configuration of the stack that runs now; nothing is registered and no cluster is called before it is known to be valid."""
    raw = {**pulumi_config.get_config_env(), **pulumi_config.CONFIG.get()}
    secret = {*pulumi_config.get_config_secret_keys_env(), *(key for key in raw if pulumi_config.is_config_secret(key))}
    config = load(pulumi.get_stack(), raw, frozenset(secret))
    check_versions(config, pulumi.get_stack(), raw, frozenset(secret))
    return config


def check_versions(
    config: StackConfig, stack: str, raw: Mapping[str, object], secret: frozenset[str] = frozenset(), view: ViewOf = registry_view
) -> None:
    """Ask the stack's registry, once, which versions may get traffic. ConfigError with all faults, or when the registry cannot be read."""
    try:
        found = view(config)
    except RegistryError as error:
        said = UNSHOWN if secret else error.message
        raise ConfigError(
            f"stack {stack}: registry: {said}", hint=f"{error.hint}; nothing was changed. To go on without one: pulumi config rm registry"
        ) from None
    if found is None:
        return
    problems = of_faults(registry_faults(config, found), _own(raw), frozenset(map(_bare, secret)))
    if problems:
        raise _error(stack, problems)


def _own(raw: Mapping[str, object]) -> dict[str, object]:
    """The project's keys, without its namespace."""
    return {_bare(key): _parsed(value) for key, value in raw.items() if _namespace(key) == PROJECT}


def _namespace(key: str) -> str:
    return key.split(":", 1)[0]


def _bare(key: str) -> str:
    return key.split(":", 1)[-1]


def _parsed(value: object) -> object:
    """Pulumi hands a mapping or list over as JSON text and every top-level scalar as a string."""
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _foreign(key: str) -> Problem:
    """`kubernetes:context` and its like would silently do nothing: they configure default providers, which are disabled."""
    return Problem(key, None, "has no effect: every provider is made explicitly", f"remove it; the cluster is chosen by {PROJECT}:cluster")


def _detached(key: str, known: Mapping[str, object]) -> Problem:
    """What `pulumi config set a.b 1` without --path leaves behind: a key with a dot in its name."""
    top = key.split(".", 1)[0]
    if top in StackConfig.top_level_keys():
        way_out = f"pulumi config rm '{PROJECT}:{key}', then: pulumi config set --path {key} <value>"
        return Problem(key, None, f"is one key with dots in its name, not a path into {top}", way_out)
    return Problem(key, None, "unknown key", unknown_key_hint(top, sorted({*StackConfig.top_level_keys(), *known} - {key})))


def _error(stack: str, problems: list[Problem]) -> ConfigError:
    count = f"{len(problems)} faults" if len(problems) > 1 else "1 fault"
    lines = "\n".join(f"  {problem}" for problem in problems)
    return ConfigError(f"stack {stack}: {count} in the configuration\n{lines}", hint=f"correct stacks/Pulumi.{stack}.yaml; nothing was changed")
