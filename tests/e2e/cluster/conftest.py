"""Clusters of the tests' own: they never touch the one a person works with."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.cluster import Cluster, ClusterSpec, NodeImages, delete, start
from tools.cluster.kubectl import Kubectl
from tools.images import ensure_images
from tools.paths import REPO
from tools.toolchain import Toolchain, ensure

Start = Callable[[ClusterSpec], Cluster]


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return ensure()


@pytest.fixture(scope="session")
def node_images(toolchain: Toolchain) -> NodeImages:
    built = ensure_images(toolchain.path, names=("pause", "coredns"))
    return NodeImages(pause=built["pause"].ref, coredns=built["coredns"].ref, archives=tuple(image.path for image in built.values()))


@pytest.fixture(scope="session")
def begin(toolchain: Toolchain, node_images: NodeImages) -> Start:
    """Starts a cluster as `make cluster` would."""
    return lambda spec: start(spec, toolchain.path, None if spec.control_plane_only else node_images)


@pytest.fixture
def name() -> Iterator[str]:
    """A name for a cluster of this test; the cluster is deleted at the end."""
    chosen = f"t{os.getpid() % 10**7}"
    yield chosen
    delete(chosen, keep_images=False)


@pytest.fixture
def kubectl(toolchain: Toolchain) -> Callable[[Cluster], Kubectl]:
    return lambda cluster: Kubectl(toolchain.path("kubectl"), cluster.kubeconfig)


@pytest.fixture
def command() -> Callable[..., subprocess.Popen[str]]:
    """Runs `python -m tools.cluster` as a process of its own."""

    def run(*arguments: str) -> subprocess.Popen[str]:
        line = (sys.executable, "-m", "tools.cluster", *arguments)
        return subprocess.Popen(line, cwd=Path(REPO), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    return run
