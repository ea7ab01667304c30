"""The running platform as the benchmark uses it."""

import json
import time
from dataclasses import dataclass
from typing import Any

from components import labels
from components.core.model_identity import ModelIdentity, version_label
from loadtests.address import OwnAddress, own_address
from loadtests.grpc_target import GrpcTarget
from loadtests.http_target import HttpTarget
from loadtests.payloads import http_json
from serving.contract import GRPC_PORT, HTTP_PORT
from tools.cluster.kubectl import Kubectl
from tools.endpoint import SHORT, SIGNATURE, Endpoint
from tools.errors import ToolError
from tools.pulumi_cli import PulumiStack, UpdateResult

DIRECT_SERVICE = "bench-direct"
WEIGHT = f"models.{SIGNATURE.model}.canary.weight"


@dataclass(frozen=True, kw_only=True)
class Site:
    """`stack` reads a copy of the stack file."""

    stack: PulumiStack
    kubectl: Kubectl
    endpoint: Endpoint
    identity: ModelIdentity

    def address(self, port: int) -> OwnAddress:
        return own_address(self.endpoint.address, port, own=[self.endpoint.address])

    def http(self, name: str, port: int) -> HttpTarget:
        return HttpTarget(name=name, address=self.address(port), authority=self.endpoint.host, signature=SIGNATURE, documents=(SHORT,))

    def grpc(self, name: str, port: int) -> GrpcTarget:
        return GrpcTarget(name=name, address=self.address(port), authority=self.endpoint.host, signature=SIGNATURE, documents=(SHORT,))

    def up(self, *, weight: int | None = None) -> tuple[UpdateResult, float]:
        """`pulumi up`, after an edit of the canary's weight if one is given; with the seconds that `up` took. Raises ToolError when it fails."""
        if weight is not None:
            self.stack.set_config(WEIGHT, str(weight))
        began = time.monotonic()
        result = self.stack.up()
        seconds = time.monotonic() - began
        if not result.ok:
            raise ToolError(f"`pulumi up` failed:\n{result.log}", "the message above says what to change")
        return result, seconds

    def open_direct(self) -> tuple[int, int]:
        """Node ports of version 1 without the gateway, HTTP and gRPC; the way there has everything else in common with the gateway's."""
        self.kubectl.apply([build_direct_service(self.identity)])
        service = self.kubectl.get("service", DIRECT_SERVICE, "--namespace", self.identity.namespace)
        if service is None:
            raise ToolError(f"the Service {DIRECT_SERVICE} is not there", "make status")
        http, grpc = (int(port["nodePort"]) for port in service["spec"]["ports"])
        return http, grpc

    def close_direct(self) -> None:
        self.kubectl.run("delete", "service", DIRECT_SERVICE, "--namespace", self.identity.namespace, "--ignore-not-found")

    def answers(self, pod: str) -> bool:
        """Whether this pod gives the right answer, asked through the API server, whatever its readiness says."""
        request = http_json(SIGNATURE, SHORT)
        path = f"/api/v1/namespaces/{self.identity.namespace}/pods/{pod}:{HTTP_PORT}/proxy{request.path}"
        done = self.kubectl.try_run("create", "--raw", path, "--filename", "-", text=request.body.decode())
        return done.returncode == 0 and f'"{SHORT.label}"' in done.stdout

    def pods(self, version: int) -> list[dict[str, Any]]:
        selector = ",".join(f"{key}={value}" for key, value in version_labels(self.identity, version).items())
        listed = self.kubectl.run("get", "pods", "--namespace", self.identity.namespace, "--selector", selector, "--output", "json")
        pods: list[dict[str, Any]] = json.loads(listed)["items"]
        return pods


def version_labels(identity: ModelIdentity, version: int) -> dict[str, str]:
    return {**labels.model_selector(identity.name), labels.VERSION: version_label(version)}


def build_direct_service(identity: ModelIdentity) -> dict[str, Any]:
    """Service of type NodePort on the pods of version 1; the API server chooses the ports."""
    ports = [{"name": name, "port": port, "targetPort": port} for name, port in (("http", HTTP_PORT), ("grpc", GRPC_PORT))]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": DIRECT_SERVICE, "namespace": identity.namespace},
        "spec": {"type": "NodePort", "selector": version_labels(identity, 1), "ports": ports},
    }
