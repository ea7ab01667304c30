"""Reading a kubeconfig to say early, and in one sentence, why a cluster cannot be used. Nothing of it reaches Pulumi's state."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from components.errors import AssetError

CONNECT_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class Access:
    """One context: the API server it names and whether connections to it take a detour that a plain connect would miss."""

    context: str
    server: str
    through_proxy: bool


def kubeconfig_paths(explicit: str | None) -> list[Path]:
    """The files kubectl would read: the given one, else those of $KUBECONFIG, else ~/.kube/config."""
    if explicit is not None:
        return [Path(explicit).expanduser()]
    listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return [Path(part) for part in listed] or [Path.home() / ".kube" / "config"]


def find_access(paths: list[Path], context: str) -> Access:
    """The context's API server; AssetError names the contexts there are when this one is missing."""
    documents = [_read(path) for path in paths if path.exists()]
    where = ", ".join(map(str, paths))
    if not documents:
        raise AssetError(f"no kubeconfig at {where}", hint="set KUBECONFIG to one that has the context, or start the local cluster: make cluster")
    contexts = {entry["name"]: entry["context"] for document in reversed(documents) for entry in document.get("contexts") or []}
    clusters = {entry["name"]: entry["cluster"] for document in reversed(documents) for entry in document.get("clusters") or []}
    if context not in contexts:
        known = ", ".join(sorted(contexts)) or "none"
        raise AssetError(f"cluster.context {context!r} is not in {where}", hint=f"contexts there: {known}; correct cluster.context or set KUBECONFIG")
    cluster = clusters.get(contexts[context].get("cluster"), {})
    if "server" not in cluster:
        raise AssetError(f"context {context!r} in {where} names no cluster with a server", hint="correct the kubeconfig")
    through_proxy = "proxy-url" in cluster or any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy"))
    return Access(context=context, server=cluster["server"], through_proxy=through_proxy)


def check_reachable(access: Access) -> None:
    """Connect to the API server once; AssetError says it is unreachable. Behind a proxy only the provider can tell."""
    if access.through_proxy:
        return
    address = urlsplit(access.server)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), timeout=CONNECT_TIMEOUT_SECONDS).close()
    except OSError as error:
        raise AssetError(
            f"the API server {access.server} of context {access.context!r} is unreachable: {error.strerror or error}",
            hint="start the cluster (local: make cluster) or connect to its network; nothing was changed",
        ) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise AssetError(f"kubeconfig {path} cannot be read: {type(error).__name__}", hint="correct the file or set KUBECONFIG to another") from error
    return document if isinstance(document, dict) else {}
