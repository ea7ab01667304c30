"""Pods without a kubelet: says of every pod that it runs and is ready, so that the real controllers and Pulumi's waits come to their end."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.e2e.kube import client_settings, is_ready

PERIOD_SECONDS = 0.2
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@contextmanager
def every_pod_becomes_ready(kubeconfig: Path, context: str) -> Iterator[None]:
    """Runs in a thread of its own until the block is left."""
    server, credentials = client_settings(yaml.safe_load(kubeconfig.read_text(encoding="utf-8")), context)
    done = threading.Event()
    with httpx.Client(base_url=server, verify=credentials, trust_env=False, timeout=10) as client:
        thread = threading.Thread(target=_run, args=(client, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def _run(client: httpx.Client, done: threading.Event) -> None:
    addresses = (f"10.255.{high}.{low}" for high, low in itertools.product(range(256), range(1, 255)))
    while not done.is_set():
        started = time.monotonic()
        # An API server that is busy or about to stop is asked again; the test's own calls report real trouble.
        try:
            pods = client.get("/api/v1/pods").json().get("items", [])
            for pod in pods:
                if not is_ready(pod):
                    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
                    client.patch(path, headers=MERGE_PATCH, json=_running(next(addresses)))
        except httpx.TransportError:
            pass
        done.wait(max(0.0, PERIOD_SECONDS - (time.monotonic() - started)))


def _running(address: str) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("Initialized", "ContainersReady", "Ready")]
    return {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}}
