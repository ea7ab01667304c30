"""kubectl on one cluster, always with its own kubeconfig."""

import json
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tools.errors import ToolError


@dataclass(frozen=True)
class Kubectl:
    binary: Path
    kubeconfig: Path

    def try_run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        command = (str(self.binary), "--kubeconfig", str(self.kubeconfig), "--request-timeout=5s", *arguments)
        return subprocess.run(command, check=False, capture_output=True, text=True, input=text)

    def run(self, *arguments: str, text: str | None = None) -> str:
        """Standard output. Raises ToolError with kubectl's own words when it fails."""
        done = self.try_run(*arguments, text=text)
        if done.returncode != 0:
            raise ToolError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}", f"look at the cluster with KUBECONFIG={self.kubeconfig}")
        return done.stdout

    def get(self, *arguments: str) -> dict[str, Any] | None:
        """The object as JSON, None when it or the API server is not there."""
        done = self.try_run("get", *arguments, "--output", "json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def apply(self, manifests: list[dict[str, Any]]) -> None:
        self.run(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--filename",
            "-",
            text=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}),
        )


def has_condition(item: dict[str, Any] | None, kind: str) -> bool:
    """Whether a node, pod or deployment has the condition `kind` with status True."""
    return any(condition["type"] == kind and condition["status"] == "True" for condition in _conditions(item))


def node_ready_since(node: dict[str, Any] | None, since: float) -> bool:
    """Whether the kubelet has called the node ready at or after `since` (seconds since the epoch): a stopped node is called ready for a while."""
    beats = [_seconds(condition["lastHeartbeatTime"]) for condition in _conditions(node) if condition["type"] == "Ready"]
    return has_condition(node, "Ready") and all(beat >= int(since) for beat in beats)


def pod_ready_since(pod: dict[str, Any], since: float) -> bool:
    """Whether the pod is ready and its containers started at or after `since`: those of a stopped node stay in the API server's memory."""
    running = [status.get("state", {}).get("running") for status in pod.get("status", {}).get("containerStatuses", [])]
    return has_condition(pod, "Ready") and all(state is not None and _seconds(state["startedAt"]) >= int(since) for state in running)


def rolled_out(deployment: dict[str, Any] | None) -> bool:
    """Whether all replicas of a Deployment are of its present template and available."""
    if deployment is None:
        return False
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return seen and all(status.get(key, 0) == wanted for key in ("replicas", "updatedReplicas", "availableReplicas"))


def _conditions(item: dict[str, Any] | None) -> list[dict[str, Any]]:
    return list((item or {}).get("status", {}).get("conditions", []))


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
