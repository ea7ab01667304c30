"""A copy of the project with a backend of its own, so that commands may change stack files as a person's would."""

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from serving.registry.location import REGISTRY_VARIABLE, Location
from serving.registry.store import Store
from tests.documents import IMAGE
from tools.paths import REPO
from tools.pulumi_cli import PulumiStack

BOOKKEEPING = {"created", "modified", "sourcePosition", "stackTrace", "propertyDependencies"}
PARTS = ("components", "serving", "stacks")


@dataclass(frozen=True)
class Project:
    """`root` is the copy; `stack` drives it."""

    root: Path
    stack: PulumiStack

    def edit(self, path: str, value: Any) -> None:
        """Set (or with None remove) a dotted path below our namespace in the stack file, with any type of value."""
        file = self.stack_file
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        top, *rest = path.split(".")
        keys = [f"inference-platform:{top}", *rest]
        node = content["config"]
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        if value is None:
            del node[keys[-1]]
        else:
            node[keys[-1]] = value
        file.write_text(yaml.safe_dump(content), encoding="utf-8")

    @property
    def stack_file(self) -> Path:
        return self.root / "stacks" / f"Pulumi.{self.stack.stack}.yaml"

    @property
    def registry(self) -> Store:
        return Store(Location.parse(self.stack.env[REGISTRY_VARIABLE]))

    def resources(self) -> str:
        """What the state knows of the resources, in order of their URNs, as text; without the bookkeeping of the engine's last operation."""
        entries = json.loads(self.stack.check("stack", "export"))["deployment"].get("resources", [])
        known = [{key: value for key, value in entry.items() if key not in BOOKKEEPING} for entry in entries]
        return json.dumps(sorted(known, key=lambda entry: str(entry["urn"])), sort_keys=True)


def make_project(root: Path, stack: str, environment: Mapping[str, str]) -> Project:
    """Copy what the program needs; the cloud stacks get an image and charts that need no network."""
    for part in PARTS:
        shutil.copytree(REPO / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(REPO / file, root / file)
    (root / ".venv").symlink_to(Path(sys.prefix))
    backend = root / "state"
    backend.mkdir()
    env = {**environment, "PULUMI_BACKEND_URL": f"file://{backend}", "PULUMI_CONFIG_PASSPHRASE": "preview"}
    project = Project(root, PulumiStack(env=env, stack=stack, project=root, pulumi=env["PULUMI"]))
    _own_secrets(project)
    if stack != "local":
        project.edit("images", {"triton": IMAGE})
        project.edit("addons.istio.source", {"kind": "module"})
    project.stack.ensure()
    return project


def _own_secrets(project: Project) -> None:
    """Drop the committed salt: it belongs to another passphrase."""
    content = yaml.safe_load(project.stack_file.read_text(encoding="utf-8"))
    content.pop("encryptionsalt", None)
    project.stack_file.write_text(yaml.safe_dump(content), encoding="utf-8")


def write_assets(file: Path, charts: Mapping[str, str]) -> Path:
    """The list of local assets that the program reads."""
    images = {name: f"localhost/inference-platform/{name}:0" for name in ("pilot", "proxyv2", "triton", "gpu-simulator", "apps")}
    file.write_text(json.dumps({"charts": dict(charts), "images": images}), encoding="utf-8")
    return file


def write_kubeconfig(
    file: Path, source: Path, context: str, contexts: tuple[str, ...], *, current: str | None = None, server: str | None = None
) -> Path:
    """The cluster's kubeconfig with its context under other names, with another current one, or with another server."""
    content = yaml.safe_load(source.read_text(encoding="utf-8"))
    chosen = next(entry["context"] for entry in content["contexts"] if entry["name"] == context)
    content["contexts"] = [{"name": name, "context": chosen} for name in contexts]
    content["current-context"] = current or contexts[0]
    for cluster in content["clusters"] if server else ():
        cluster["cluster"]["server"] = server
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file
