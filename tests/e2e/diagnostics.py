"""What a failed test leaves to read: objects, events and logs, and never a Secret."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.e2e.kube import Kube, Manifest

# A closed list, so that no kind that may hold a credential is ever read.
KINDS = (
    "nodes",
    "pods",
    "deployments",
    "replicasets",
    "daemonsets",
    "services",
    "poddisruptionbudgets",
    "virtualservices",
    "destinationrules",
    "gateways",
)
LOG_LINES = 60


def dump(kube: Kube, namespaces: tuple[str, ...]) -> str:
    """The state of the namespaces as text. A part that cannot be read is named instead: the dump must not hide the failure it is about."""
    return "\n".join(_attempt(part, make) for part, make in _parts(kube, namespaces))


def _parts(kube: Kube, namespaces: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "events", lambda: "\n".join(_event(event) for event in _events(kube))
    for kind in KINDS:
        yield kind, lambda kind=kind: "\n".join(_summary(found) for found in kube.find(kind) if _concerns(found, namespaces))  # type: ignore[misc]
    yield "logs", lambda: "\n".join(_logs(kube, pod) for namespace in namespaces for pod in kube.find("pods", namespace))


def _attempt(part: str, make: Callable[[], str]) -> str:
    try:
        return f"---- {part}\n{make()}"
    except Exception as error:  # noqa: BLE001  diagnostics: whatever fails here must not replace the test's own failure
        return f"---- {part}: {error!r}"


def _concerns(found: Manifest, namespaces: tuple[str, ...]) -> bool:
    return found["metadata"].get("namespace") in (*namespaces, None)


def _events(kube: Kube) -> list[Manifest]:
    return sorted(kube.find("events"), key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime")))[-100:]


def _event(event: Manifest) -> str:
    where = event["involvedObject"]
    return f"{event.get('lastTimestamp')} {event.get('type')} {where['kind']} {where.get('namespace')}/{where['name']}: {event.get('message')}"


def _summary(found: Manifest) -> str:
    metadata: dict[str, Any] = {key: value for key, value in found["metadata"].items() if key != "managedFields"}
    return json.dumps({"metadata": metadata, "spec": found.get("spec"), "status": found.get("status")})


def _logs(kube: Kube, pod: Manifest) -> str:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    texts = []
    for status in pod.get("status", {}).get("containerStatuses", []):
        for previous in (False, True) if status["restartCount"] else (False,):
            read = _attempt(
                f"log of {namespace}/{name}/{status['name']}{' before the restart' if previous else ''}", _reader(kube, pod, status, previous)
            )
            texts.append(read)
    return "\n".join(texts)


def _reader(kube: Kube, pod: Manifest, status: Manifest, previous: bool) -> Callable[[], str]:
    metadata = pod["metadata"]
    return lambda: kube.logs(metadata["name"], metadata["namespace"], status["name"], lines=LOG_LINES, previous=previous)
