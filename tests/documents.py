"""Stack files as Pulumi hands them over, with changes, and what the platform makes of them."""

import json
from copy import deepcopy
from functools import cache
from typing import Any

import yaml

from stacks.assets import Assets
from stacks.loader import PROJECT, load
from stacks.platform import build
from tests.engine import Recording, run
from tools.paths import REPO

ENVIRONMENTS = ("local", "dev", "staging", "prod")
# What the committed files of the cloud stacks leave to their user.
IMAGE = f"registry.example.com/triton@sha256:{'0' * 64}"


def document(stack: str = "local") -> dict[str, Any]:
    """The committed keys of a stack, with the engine's and ours, complete for every environment."""
    config = deepcopy(_committed(stack))
    if stack != "local":
        config[f"{PROJECT}:images"] = {"triton": IMAGE}
    return config


@cache
def _committed(stack: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((REPO / "stacks" / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))["config"]
    return config


def changed(path: str, value: Any, stack: str = "local") -> dict[str, Any]:
    """The stack's keys with one value set at a dotted path below our namespace."""
    config = document(stack)
    top, *rest = path.split(".")
    if not rest:
        config[f"{PROJECT}:{top}"] = value
        return config
    node = config.setdefault(f"{PROJECT}:{top}", {})
    for key in rest[:-1]:
        node = node.setdefault(key, {})
    node[rest[-1]] = value
    return config


def without(path: str, stack: str = "local") -> dict[str, Any]:
    """The stack's keys without the one at a dotted path below our namespace."""
    config = document(stack)
    top, *rest = path.split(".")
    node, last = (config, f"{PROJECT}:{top}") if not rest else (config[f"{PROJECT}:{top}"], rest[-1])
    for key in rest[:-1]:
        node = node[key]
    del node[last]
    return config


def as_pulumi_passes(config: dict[str, Any]) -> dict[str, str]:
    """Scalars as text, everything else as JSON: how a program finds them."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}


def local_assets() -> Assets:
    """Assets as `make up` would list them, at places that exist nowhere."""
    return Assets(
        charts={name: f"/charts/{name}" for name in ("istio-base", "istiod", "istio-gateway")},
        images={name: f"localhost/inference-platform/{name}:0" for name in ("pilot", "proxyv2", "triton", "gpu-simulator", "apps")},
    )


def built(config: dict[str, Any], stack: str = "local", *, preview: bool = False) -> Recording:
    """What the platform registers for a configuration, against recording mocks."""
    checked = load(stack, as_pulumi_passes(config))
    return run(lambda: build(checked, local_assets()), stack=stack, preview=preview)
