"""Who a model is, and what its upstream clusters are called in Envoy's metrics."""

import pytest

from components.core.envoy import service_cluster, subset_cluster
from components.core.model_identity import MODEL_NAME_MAX, ModelIdentity, check_model_name
from components.naming import DNS_LABEL_MAX

IDENTITY = ModelIdentity(name="file-types", triton_name="magika_v1", namespace="inference")


def test_kubernetes_names_come_from_the_name_and_never_from_tritons():
    assert IDENTITY.host == "file-types.inference.svc.cluster.local"
    assert IDENTITY.deployment(2) == "file-types-v2"


def test_a_versions_cluster_is_its_subset_of_the_models_host():
    """istio/istio pilot/pkg/model/push_context.go, BuildSubsetKey."""
    assert subset_cluster(IDENTITY, 2, 8001) == "outbound|8001|v2|file-types.inference.svc.cluster.local"


def test_a_plain_services_cluster_has_an_empty_subset():
    assert service_cluster("file-types-canary", "inference", 8000) == "outbound|8000||file-types-canary.inference.svc.cluster.local"


@pytest.mark.parametrize("name", ["m", "magika", "file-types", "m1", "m" * MODEL_NAME_MAX])
def test_a_dns_label_that_leaves_room_is_a_model_name(name):
    assert check_model_name(name) == name
    # Deployment, ReplicaSet hash and pod suffix are what Kubernetes itself puts behind it.
    assert len(f"{name}-v9999-0123456789-01234") <= DNS_LABEL_MAX


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "no DNS label"),
        ("Magika", "no DNS label"),
        ("ma_gika", "tritonName"),
        ("-m", "no DNS label"),
        ("m-", "no DNS label"),
        ("m" * 41, "41 characters"),
    ],
)
def test_any_other_name_is_refused_with_the_reason(name, reason):
    with pytest.raises(ValueError, match=reason):
        check_model_name(name)
