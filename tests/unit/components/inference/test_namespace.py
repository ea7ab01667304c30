"""The models' namespace: restricted pods, no token for pods that name no account."""

from components.inference.namespace import ModelsNamespace, ModelsNamespaceArgs
from components.inference.network_manifest import GatewayPods
from tests.engine import run

ARGS = ModelsNamespaceArgs(namespace="inference", gateway=GatewayPods(namespace="inference-gateway", selector={"istio": "gateway"}, port=80))


def test_the_namespace_enforces_the_restricted_standard() -> None:
    recording = run(lambda: ModelsNamespace("models", ARGS))
    assert recording.one("Namespace").inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_default_account_loses_its_token_once_the_namespace_is_there() -> None:
    recording = run(lambda: ModelsNamespace("models", ARGS))
    account = recording.one("ServiceAccount", "default")
    assert account.inputs["automountServiceAccountToken"] is False
    assert account.inputs["metadata"]["namespace"] == "inference"
    assert account.dependencies == (recording.one("Namespace").urn,)


def test_the_network_is_closed_before_anything_that_waits_for_the_namespace() -> None:
    recording = run(lambda: ModelsNamespace("models", ARGS))
    policies = {policy.inputs["metadata"]["name"]: policy for policy in recording.of_type("NetworkPolicy")}
    assert set(policies) == {"default-deny", "servers", "apps", "clients"}
    closed = policies["default-deny"].inputs["spec"]
    assert (closed["podSelector"], closed["policyTypes"], closed["ingress"]) == ({}, ["Ingress", "Egress"], [])
    assert all(policy.dependencies == (recording.one("Namespace").urn,) for policy in policies.values())
