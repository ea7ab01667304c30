"""The cluster's API as plain dicts over plain HTTP; the context is always explicit.

kr8s would do, but its current release warns about the Kubernetes minor we run and leaves connections open, and here warnings are errors.
"""

import base64
import ssl
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e.waits import wait_for

Manifest = dict[str, Any]

# Where each kind lives: group and version as in the path, and whether it has a namespace.
CORE, APPS, BATCH, POLICY, NETWORKING = "api/v1", "apis/apps/v1", "apis/batch/v1", "apis/policy/v1", "apis/networking.k8s.io/v1"
ISTIO = "apis/networking.istio.io/v1"
NAMESPACED = {
    "pods": CORE,
    "services": CORE,
    "configmaps": CORE,
    "serviceaccounts": CORE,
    "secrets": CORE,
    "persistentvolumeclaims": CORE,
    "events": CORE,
    "deployments": APPS,
    "replicasets": APPS,
    "daemonsets": APPS,
    "jobs": BATCH,
    "poddisruptionbudgets": POLICY,
    "networkpolicies": NETWORKING,
    "virtualservices": ISTIO,
    "destinationrules": ISTIO,
    "gateways": ISTIO,
}
CLUSTER_WIDE = {"nodes": CORE, "namespaces": CORE, "persistentvolumes": CORE}
TIMEOUT_SECONDS = 30


class Kube:
    """Reads and changes objects of one cluster; `kind` is the plural in lower case. Raises httpx.HTTPStatusError with the server's message."""

    def __init__(self, kubeconfig: Path, context: str) -> None:
        server, credentials = client_settings(yaml.safe_load(kubeconfig.read_text(encoding="utf-8")), context)
        self._http = httpx.Client(base_url=server, verify=credentials, trust_env=False, timeout=TIMEOUT_SECONDS, event_hooks={"response": [explain]})

    def close(self) -> None:
        self._http.close()

    def find(self, kind: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> list[Manifest]:
        """Objects of a kind, in one namespace or in all."""
        selector = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        found: list[Manifest] = self._http.get(path_of(kind, namespace), params={"labelSelector": selector}).json()["items"]
        return found

    def get(self, kind: str, name: str, namespace: str | None = None) -> Manifest | None:
        """The object, or None if there is none."""
        try:
            found: Manifest = self._http.get(f"{path_of(kind, namespace)}/{name}").json()
        except httpx.HTTPStatusError as error:
            if error.response.status_code == httpx.codes.NOT_FOUND:
                return None
            raise
        return found

    def create(self, manifests: Iterable[Manifest]) -> None:
        for manifest in manifests:
            self._http.post(path_of(f"{manifest['kind'].lower()}s", manifest["metadata"].get("namespace")), json=manifest)

    @contextmanager
    def created(self, manifests: Sequence[Manifest]) -> Iterator[None]:
        """Create the objects, and delete them afterwards, last first."""
        try:
            self.create(manifests)
            yield
        finally:
            for manifest in reversed(manifests):
                self.delete(f"{manifest['kind'].lower()}s", manifest["metadata"]["name"], manifest["metadata"].get("namespace"))

    def delete(self, kind: str, name: str, namespace: str | None = None, *, seconds: float = 60) -> None:
        """Delete and wait until it is gone, pods with their grace period; nothing happens if there is none."""
        found = self.get(kind, name, namespace)
        if found is None:
            return
        uid = found["metadata"]["uid"]
        self._http.request("DELETE", f"{path_of(kind, namespace)}/{name}", json={"preconditions": {"uid": uid}, "propagationPolicy": "Background"})
        wait_for(
            f"{kind} {name} is deleted",
            lambda: self.get(kind, name, namespace),
            lambda state: state is None or state["metadata"]["uid"] != uid,
            seconds=seconds,
        )

    def logs(self, pod: str, namespace: str, container: str, *, lines: int, previous: bool = False) -> str:
        options = {"container": container, "tailLines": str(lines), "previous": str(previous).lower()}
        return self._http.get(f"{path_of('pods', namespace)}/{pod}/log", params=options).text

    def pod_call(self, method: str, pod: Manifest, port: int, path: str, body: str | None = None) -> str:
        """An HTTP request to a pod through the API server, which reaches the pods' network."""
        metadata = pod["metadata"]
        where = f"{path_of('pods', metadata['namespace'])}/{metadata['name']}:{port}/proxy/{path}"
        return self._http.request(method, where, content=body).text

    def ready_pods(self, namespace: str, labels: Mapping[str, str]) -> list[Manifest]:
        """Pods that are ready and not on their way out."""
        return [pod for pod in self.find("pods", namespace, labels) if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]


def path_of(kind: str, namespace: str | None) -> str:
    if kind in CLUSTER_WIDE:
        return f"/{CLUSTER_WIDE[kind]}/{kind}"
    return f"/{NAMESPACED[kind]}/{kind}" if namespace is None else f"/{NAMESPACED[kind]}/namespaces/{namespace}/{kind}"


def is_ready(pod: Manifest) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def explain(response: httpx.Response) -> None:
    """Raise for an error with what the server said about it."""
    if response.is_error:
        text = response.read().decode(errors="replace")
        raise httpx.HTTPStatusError(
            f"{response.request.method} {response.url}: {response.status_code} {text}", request=response.request, response=response
        )


def client_settings(kubeconfig: Manifest, context: str) -> tuple[str, ssl.SSLContext]:
    """Server and credentials of a context whose user has a client certificate, as kubeadm writes it."""
    named = {part: {entry["name"]: entry for entry in kubeconfig[part]} for part in ("contexts", "clusters", "users")}
    chosen = named["contexts"][context]["context"]
    cluster, user = named["clusters"][chosen["cluster"]]["cluster"], named["users"][chosen["user"]]["user"]
    settings = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    # The standard library takes a key from a file only; this one is gone again a moment later.
    with tempfile.NamedTemporaryFile() as file:
        file.write(base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"]))
        file.flush()
        settings.load_cert_chain(file.name)
    return cluster["server"], settings
