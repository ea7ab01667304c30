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
        return [Path(os.path.expanduser(explicit))]  # noqa: PTH111  Path.expanduser raises for a user that is not there
    listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return [Path(part) for part in listed] or [Path.home() / ".kube" / "config"]


def find_access(paths: list[Path], context: str) -> Access:
    """The context's API server; AssetError names the contexts there are when this one is missing."""
    documents = [document for path in paths if (document := _read(path)) is not None]
    where = ", ".join(map(str, paths))
    if not documents:
        raise AssetError(f"no kubeconfig at {where}", hint="set KUBECONFIG to one that has the context, or start the local cluster: make cluster")
    try:
        contexts, clusters = _named(documents, "context"), _named(documents, "cluster")
    except (KeyError, TypeError, AttributeError) as error:
        raise AssetError(f"kubeconfig {where} is no kubeconfig: {error!r}", hint="correct the file or set KUBECONFIG to another") from error
    if context not in contexts:
        known = ", ".join(sorted(contexts)) or "none"
        raise AssetError(f"cluster.context {context!r} is not in {where}", hint=f"contexts there: {known}; correct cluster.context or set KUBECONFIG")
    cluster = clusters.get(str(contexts[context].get("cluster")), {})
    if "server" not in cluster:
        raise AssetError(f"context {context!r} in {where} names no cluster with a server", hint="correct the kubeconfig")
    through_proxy = "proxy-url" in cluster or any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy"))
    if not isinstance(cluster["server"], str):
        raise AssetError(f"the server of context {context!r} in {where} is no address", hint="correct the kubeconfig")
    return Access(context=context, server=cluster["server"], through_proxy=through_proxy)


def check_reachable(access: Access) -> None:
    """Connect to the API server once; AssetError says it is unreachable. Behind a proxy only the provider can tell."""
    if access.through_proxy:
        return
    try:
        socket.create_connection(_address(access.server), timeout=CONNECT_TIMEOUT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise AssetError(
            f"the API server {access.server} of context {access.context!r} is unreachable: {getattr(error, 'strerror', None) or error}",
            hint="start the cluster (local: make cluster) or connect to its network; nothing was changed",
        ) from error


def _address(server: str) -> tuple[str, int]:
    """Host and port of a URL; ValueError where there is none, since an empty host would mean this machine."""
    url = urlsplit(server)
    if not url.hostname:
        raise ValueError("no host in the address")
    return url.hostname, url.port or (443 if url.scheme == "https" else 80)


def _named(documents: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """Contexts or clusters by name; of two with one name the first counts, as for kubectl."""
    return {str(entry["name"]): {**entry[kind]} for document in reversed(documents) for entry in document.get(f"{kind}s") or []}


def _read(path: Path) -> dict[str, Any] | None:
    """The document of a kubeconfig, None where there is no file."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise AssetError(f"kubeconfig {path} cannot be read: {type(error).__name__}", hint="correct the file or set KUBECONFIG to another") from error
    return document if isinstance(document, dict) else {}
