"""The namespace of the models, as plain dicts."""

from typing import Any

from components import labels


def build_namespace(name: str) -> dict[str, Any]:
    """Metadata of a namespace whose pods must meet the restricted Pod Security Standard."""
    return {"name": name, "labels": {**labels.common("model-server"), **labels.RESTRICTED}}


def build_default_account(namespace: str) -> dict[str, Any]:
    """The account of pods that name none: without token, so that a pod put there by hand cannot talk to the API server."""
    return {"metadata": {"name": "default", "namespace": namespace}, "automountServiceAccountToken": False}
