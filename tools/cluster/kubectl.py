"""kubectl on one cluster, always with its own kubeconfig."""

import json
import subprocess
from dataclasses import dataclass
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
    """Whether a node or deployment has the condition `kind` with status True."""
    conditions = (item or {}).get("status", {}).get("conditions", [])
    return any(condition["type"] == kind and condition["status"] == "True" for condition in conditions)
