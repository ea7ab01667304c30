"""Built-in objects of traffic and add-ons are what Kubernetes allows."""

import kubernetes_validate
import pytest

from components.addons import istio_values
from components.traffic import gateway_manifest

NAMESPACES = {
    "istio": istio_values.build_namespace(),
    "gateway": gateway_manifest.build_namespace(gateway_manifest.NAMESPACE),
}


@pytest.mark.parametrize("metadata", NAMESPACES.values(), ids=NAMESPACES)
def test_namespaces_are_allowed(kubernetes_version, metadata):
    kubernetes_validate.validate({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, kubernetes_version, strict=True)
