"""The models' namespace: restricted pods, no token for pods that name no account."""

from components.inference.namespace import ModelsNamespace, ModelsNamespaceArgs
from tests.engine import run


def test_the_namespace_enforces_the_restricted_standard() -> None:
    recording = run(lambda: ModelsNamespace("models", ModelsNamespaceArgs(namespace="inference")))
    assert recording.one("Namespace").inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_default_account_loses_its_token_once_the_namespace_is_there() -> None:
    recording = run(lambda: ModelsNamespace("models", ModelsNamespaceArgs(namespace="inference")))
    account = recording.one("ServiceAccount", "default")
    assert account.inputs["automountServiceAccountToken"] is False
    assert account.inputs["metadata"]["namespace"] == "inference"
    assert account.dependencies == (recording.one("Namespace").urn,)
