"""No hidden retry repeats an inference."""

import textwrap
import uuid
from collections.abc import Iterator

import httpx
import pytest

from components import labels
from components.core.model_identity import ModelIdentity, version_label
from components.traffic.gateway_manifest import REFERENCE
from components.traffic.istio_manifest import Route, build_destination_rule, build_virtual_service
from components.traffic.spec import RoutingSpec
from loadtests.payloads import infer_path
from serving.contract import HTTP_PORT, USER_ID
from tests.e2e.kube import Manifest
from tests.e2e.platform import NAMESPACE, Platform
from tests.e2e.traffic import gateway
from tests.e2e.waits import wait_for

pytestmark = pytest.mark.e2e

# Counts every POST and answers 503; a GET tells the count.
BACKEND = textwrap.dedent(
    f"""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    seen = []
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def answer(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def do_GET(self):
            self.answer(200, str(len(seen)).encode())
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self.path)
            self.answer(503, b"no")
    ThreadingHTTPServer(("", {HTTP_PORT}), Handler).serve_forever()
    """
)


def backend_pod(identity: ModelIdentity, image: str) -> Manifest:
    probe = {"httpGet": {"path": "/", "port": HTTP_PORT}, "periodSeconds": 1}
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True, "runAsUser": USER_ID}
    container = {
        "name": "backend",
        "image": image,
        "command": ["python3", "-u", "-c", BACKEND],
        "readinessProbe": probe,
        "securityContext": {**security, "seccompProfile": {"type": "RuntimeDefault"}},
        "resources": {"limits": {"cpu": "200m", "memory": "64Mi"}},
    }
    pod_labels = {labels.MODEL: identity.name, labels.VERSION: version_label(1)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": identity.name, "namespace": identity.namespace, "labels": pod_labels},
        "spec": {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, "containers": [container]},
    }


def backend_service(identity: ModelIdentity) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": identity.service, "namespace": identity.namespace},
        "spec": {"selector": labels.model_selector(identity.name), "ports": [{"name": "http-infer", "port": HTTP_PORT, "targetPort": HTTP_PORT}]},
    }


@pytest.fixture
def counting(platform: Platform) -> Iterator[tuple[ModelIdentity, str]]:
    """A backend behind the very route that models get; yields who it is and the host callers use."""
    name = f"counting-{uuid.uuid4().hex[:6]}"
    identity = ModelIdentity(name, name, NAMESPACE)
    domain = platform.config()["gateway"]["domain"]
    route = Route(identity=identity, domain=domain, gateway=REFERENCE, weights={version_label(1): 100}, routing=RoutingSpec())
    manifests = [
        backend_pod(identity, platform.images["triton"]),
        backend_service(identity),
        build_destination_rule(identity, 1, route.routing, connections=route.routing.requests.connections(1)),
        build_virtual_service(route),
    ]
    platform.kube.create(manifests)
    yield identity, f"{name}.{domain}"
    for manifest in reversed(manifests):
        platform.kube.delete(f"{manifest['kind'].lower()}s", manifest["metadata"]["name"], NAMESPACE)


def test_a_503_of_the_server_is_not_retried(platform: Platform, counting: tuple[ModelIdentity, str]) -> None:
    """istio/istio#13851, #50506: without an explicit policy the mesh sends a POST up to three times."""
    identity, host = counting
    with httpx.Client(base_url=f"http://{gateway(platform)}", headers={"Host": host}, trust_env=False) as http:
        # A GET of the model's metadata is served by the same route and does not count.
        wait_for("the backend is reachable", lambda: http.get(f"/v2/models/{identity.name}"), lambda answer: answer.text == "0", seconds=60)
        assert http.post(infer_path(identity.name), content=b"{}").status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert http.get(f"/v2/models/{identity.name}").text == "1"
