"""Names of Envoy's upstream clusters, as they appear in `cluster_name` of Envoy's metrics.

Istio names an outbound cluster `outbound|<port>|<subset>|<host>` (istio/istio pilot/pkg/model/push_context.go, BuildSubsetKey); the subset is
empty when the destination is a plain Service, as under Flagger.
"""

from components.core.model_identity import ModelIdentity, version_label


def subset_cluster(identity: ModelIdentity, version: int, port: int) -> str:
    """Cluster of one version of a model whose versions are subsets of one host (strategy `weighted`)."""
    return f"outbound|{port}|{version_label(version)}|{identity.host}"


def service_cluster(service: str, namespace: str, port: int) -> str:
    """Cluster of a plain Service (Flagger's `<name>-primary` and `<name>-canary`)."""
    return f"outbound|{port}||{service}.{namespace}.svc.cluster.local"
