"""The running platform as a test sees it: the stack a person edits, the cluster behind it, the gateway's address."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from serving.registry import rules
from serving.registry.location import REGISTRY_VARIABLE, Location
from serving.registry.store import Store
from tests.e2e.kube import Kube
from tools.endpoint import SIGNATURE
from tools.pulumi_cli import PulumiStack, UpdateResult

MODEL = SIGNATURE.model
NAMESPACE = "inference"
SYSTEM_NAMESPACES = ("istio-system", "inference-gateway", NAMESPACE)
VIRTUAL_SERVICES = "virtualservices"
PREFIX = "inference-platform:"


@dataclass(frozen=True)
class Edit:
    """One change of the stack file and the `pulumi up` that followed; times are seconds of the monotonic clock."""

    began: float
    returned: float
    result: UpdateResult

    @property
    def seconds(self) -> float:
        return self.returned - self.began

    def changed_kinds(self) -> list[tuple[str, str]]:
        """(operation, Kubernetes kind) of each changed object; components of ours are no objects."""
        return changed_kinds(self.result)


@dataclass(frozen=True, kw_only=True)
class Platform:
    """`stack` reads a copy of the stack file, so that no test touches the clone."""

    stack: PulumiStack
    kube: Kube
    node_address: str
    images: dict[str, str]

    def config(self) -> dict[str, Any]:
        """The stack file as it stands, without the project's prefix."""
        assert self.stack.config_file is not None
        document = yaml.safe_load(self.stack.config_file.read_text(encoding="utf-8"))["config"]
        return {key.removeprefix(PREFIX): value for key, value in document.items() if key.startswith(PREFIX)}

    @property
    def gateway_port(self) -> int:
        return int(self.config()["gateway"]["service"]["nodePort"])

    @property
    def authority(self) -> str:
        return f"{MODEL}.{self.config()['gateway']['domain']}"

    def edit(self, values: dict[str, str], *flags: str, without: tuple[str, ...] = ()) -> Edit:
        """What a person does: `pulumi config set --path` for each value and `config rm` for each key in `without`, then `pulumi up`."""
        began = time.monotonic()
        for path, value in values.items():
            self.stack.set_config(path, value)
        for path in without:
            self.stack.remove_config(path)
        result = self.stack.up(*flags)
        return Edit(began, time.monotonic(), result)

    def promote(self, version: int) -> None:
        """What a person does before a version may be the stable one."""
        Store(Location.parse(self.stack.env[REGISTRY_VARIABLE])).take(MODEL, lambda model: rules.promote(model, version))

    def set_weight(self, weight: int) -> Edit:
        return self.edit({f"models.{MODEL}.canary.weight": str(weight)})

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put the stack file back afterwards and bring the platform in line with it, whatever happened."""
        file = self.stack.config_file
        assert file is not None
        before = file.read_bytes()
        try:
            yield
        finally:
            file.write_bytes(before)
            result = self.stack.up("--refresh")
            assert result.ok, result.log


def changed_kinds(result: UpdateResult) -> list[tuple[str, str]]:
    """(operation, kind) of each changed Kubernetes object, in order. A URN is urn:pulumi:<stack>::<project>::<parent types>$<type>::<name>."""
    found = []
    for operation, urn in result.changes:
        resource_type = urn.split("::")[2].rsplit("$", 1)[-1]
        if resource_type.startswith("kubernetes:"):
            found.append((operation, resource_type.rsplit(":", 1)[-1]))
    return found
