"""What is in the models' namespace, and what Pulumi knows to be there."""

import json

from components import labels
from tests.e2e.kube import Kube, Manifest
from tests.e2e.platform import NAMESPACE
from tools.pulumi_cli import PulumiStack

KINDS = (
    "deployments",
    "services",
    "configmaps",
    "serviceaccounts",
    "poddisruptionbudgets",
    "virtualservices",
    "destinationrules",
)
OURS = {labels.PART_OF: labels.PLATFORM}
Inventory = set[tuple[str, str]]


def inventory(kube: Kube) -> Inventory:
    """(kind, name) of everything of ours in the models' namespace."""
    return {(kind, found["metadata"]["name"]) for kind in KINDS for found in kube.find(kind, NAMESPACE, OURS)}


def recorded(stack: PulumiStack) -> Inventory:
    """The same from Pulumi's state: equal to `inventory` when nothing is orphaned and nothing is missing."""
    resources = json.loads(stack.check("stack", "export"))["deployment"]["resources"]
    known = [entry["outputs"] for entry in resources if entry["type"].startswith("kubernetes:") and "metadata" in entry.get("outputs", {})]
    return {(f"{found['kind'].lower()}s", found["metadata"]["name"]) for found in known if _is_ours(found["metadata"])}


def _is_ours(metadata: Manifest) -> bool:
    return metadata.get("namespace") == NAMESPACE and OURS.items() <= metadata.get("labels", {}).items()
