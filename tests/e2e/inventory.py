"""What is in the models' namespace, and what Pulumi knows to be there."""

import json

from components import labels
from tests.e2e.kube import Kube, Manifest
from tests.e2e.platform import NAMESPACE
from tools.pulumi_cli import PulumiStack

# Kind -> its plural, by which the API server lists it.
KINDS = {
    "Deployment": "deployments",
    "Service": "services",
    "ConfigMap": "configmaps",
    "ServiceAccount": "serviceaccounts",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "NetworkPolicy": "networkpolicies",
    "VirtualService": "virtualservices",
    "DestinationRule": "destinationrules",
}
OURS = {labels.PART_OF: labels.PLATFORM}
Inventory = set[tuple[str, str]]


def inventory(kube: Kube) -> Inventory:
    """(plural of the kind, name) of everything of ours in the models' namespace."""
    return {(plural, found["metadata"]["name"]) for plural in KINDS.values() for found in kube.find(plural, NAMESPACE, OURS)}


def recorded(stack: PulumiStack) -> Inventory:
    """The same from Pulumi's state: equal to `inventory` when nothing is orphaned and nothing is missing."""
    resources = json.loads(stack.check("stack", "export"))["deployment"]["resources"]
    known = [entry["outputs"] for entry in resources if entry["type"].startswith("kubernetes:") and "metadata" in entry.get("outputs", {})]
    return {(KINDS.get(found["kind"], found["kind"]), found["metadata"]["name"]) for found in known if _is_ours(found["metadata"])}


def _is_ours(metadata: Manifest) -> bool:
    return metadata.get("namespace") == NAMESPACE and OURS.items() <= metadata.get("labels", {}).items()
