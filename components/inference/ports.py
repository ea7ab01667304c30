"""Ports of a Triton Service, named as Istio needs them."""

from typing import Any

from components.errors import ManifestError
from serving.contract import GRPC_PORT, HTTP_PORT, METRICS_PORT

HTTP_PORT_NAME = "http-infer"
GRPC_PORT_NAME = "grpc-infer"
METRICS_PORT_NAME = "http-metrics"

# Istio takes a port's protocol from appProtocol or from the part of the name before the first "-"; anything else is plain TCP: one connection,
# one pod, no routes (istio.io, "Protocol Selection"; ray-project/kuberay#2347).
L7_PROTOCOLS = ("http", "http2", "grpc", "grpc-web")

SERVICE_PORTS: list[dict[str, Any]] = [
    {"name": HTTP_PORT_NAME, "port": HTTP_PORT, "targetPort": HTTP_PORT_NAME, "appProtocol": "http", "protocol": "TCP"},
    {"name": GRPC_PORT_NAME, "port": GRPC_PORT, "targetPort": GRPC_PORT_NAME, "appProtocol": "grpc", "protocol": "TCP"},
    {"name": METRICS_PORT_NAME, "port": METRICS_PORT, "targetPort": METRICS_PORT_NAME, "appProtocol": "http", "protocol": "TCP"},
]


def check_port_names(ports: list[dict[str, Any]]) -> None:
    """Raise ManifestError for a port whose name does not begin with the protocol Istio shall speak, or contradicts `appProtocol`."""
    for port in ports:
        name = port.get("name", "")
        protocol = next((known for known in sorted(L7_PROTOCOLS, key=len, reverse=True) if name == known or name.startswith(f"{known}-")), None)
        if protocol is None:
            raise ManifestError(
                f"Service port {name!r} ({port.get('port')}) does not begin with a protocol, so Istio would treat it as plain TCP",
                hint=f"name it <protocol>-<suffix> with one of {', '.join(L7_PROTOCOLS)}",
            )
        if port.get("appProtocol", protocol) != protocol:
            raise ManifestError(
                f"Service port {name!r} says {protocol}, but its appProtocol says {port['appProtocol']}", hint="let name and appProtocol agree"
            )
