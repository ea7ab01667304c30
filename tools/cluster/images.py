"""Puts image archives into the nodes' image stores; there is no registry."""

import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.cluster.host import run
from tools.cluster.spec import Cluster, Layout
from tools.errors import ToolError


@dataclass(frozen=True, kw_only=True)
class NodeImages:
    """What every node needs before its first pod: references, and the archives (OCI or Docker format) that hold them."""

    pause: str
    coredns: str
    archives: tuple[Path, ...]


def archive_refs(archive: Path) -> set[str]:
    """Names of the images in an archive. Raises ToolError when it is none or names none: containerd would take it without a word."""
    refs: set[str] = set()
    try:
        with tarfile.open(archive) as tar:
            for name in ("index.json", "manifest.json"):
                member = tar.extractfile(name) if name in tar.getnames() else None
                if member is not None:
                    refs |= _refs(json.load(member))
    except (OSError, tarfile.TarError, ValueError, KeyError, TypeError) as error:
        raise ToolError(f"{archive} is no image archive: {error}", "build the images again: python -m tools.images") from error
    if not refs:
        raise ToolError(f"the image in {archive} has no name", "write the archive with its full reference, registry and tag")
    return refs


def _refs(index: object) -> set[str]:
    if isinstance(index, list):
        return {str(tag) for image in index for tag in image.get("RepoTags") or []}
    if not isinstance(index, dict):
        raise TypeError("neither an OCI index nor a Docker manifest")
    annotations = [manifest.get("annotations", {}) for manifest in index.get("manifests", [])]
    names = {str(each.get("io.containerd.image.name") or each.get("org.opencontainers.image.ref.name") or "") for each in annotations}
    # A bare tag is no reference: Docker writes it beside its own manifest.json.
    return {name for name in names if "/" in name}


def _ctr(socket: Path, *arguments: str) -> str:
    return run(("ctr", "--address", str(socket), "--namespace", "k8s.io", *arguments), "is the cluster running? python -m tools.cluster status")


def load_images(cluster: Cluster, archives: Iterable[Path]) -> list[str]:
    """Imports the archives into every node of a running cluster; those whose names are there already are left alone. Answers with the imported names."""
    layout = Layout.of(cluster.name)
    wanted = {archive: archive_refs(archive) for archive in archives}
    imported: set[str] = set()
    for number in range(1, len(cluster.node_ips) + 1):
        socket = layout.containerd_socket(number)
        present = set(_ctr(socket, "images", "list", "--quiet").split())
        for archive, refs in wanted.items():
            if not refs <= present:
                _ctr(socket, "images", "import", str(archive))
                imported |= refs - present
    return sorted(imported)
