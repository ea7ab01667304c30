"""A bare control plane, the real engine, and projects to try things on."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serving.registry.location import REGISTRY_VARIABLE, Location
from tests.preview.charts import quiet_charts
from tests.preview.fake_kubelet import every_pod_becomes_ready
from tests.preview.project import Project, make_project, write_assets, write_kubeconfig
from tools.cluster import Cluster, ClusterSpec, delete, start
from tools.registry import fill
from tools.toolchain import Toolchain, charts, ensure

CONTEXTS = tuple(f"inference-platform-{name}" for name in ("local", "dev", "staging", "prod"))
MakeProject = Callable[..., Project]


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return ensure()


@pytest.fixture(scope="session")
def cluster(toolchain: Toolchain) -> Iterator[Cluster]:
    """Etcd, API server, controllers; no kubelet. Named after the process, so that test runs do not meet."""
    name = f"pv{os.getpid() % 10**8}"
    try:
        yield start(ClusterSpec(name=name, control_plane_only=True), toolchain.path)
    finally:
        delete(name, keep_images=False)


@pytest.fixture(scope="session")
def kubeconfig(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every stack's context leads to the one cluster; the current one is none of theirs."""
    file = tmp_path_factory.mktemp("kube") / "config"
    return write_kubeconfig(file, cluster.kubeconfig, cluster.context, (*CONTEXTS, "somebody-elses"), current="somebody-elses")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry as `make up` fills it, to be copied."""
    folder = tmp_path_factory.mktemp("registry")
    fill(Location.of_file(folder / "mlflow.db"))
    return folder


@pytest.fixture(scope="session")
def new_project(toolchain: Toolchain, kubeconfig: Path, registry: Path, tmp_path_factory: pytest.TempPathFactory) -> MakeProject:
    """Call with a stack's name; `quiet` takes charts that install nothing but Istio's definitions."""

    def make(stack: str = "local", *, quiet: bool = False) -> Project:
        root = tmp_path_factory.mktemp(stack)
        real = charts()
        chosen = quiet_charts(real, tmp_path_factory.mktemp("charts")) if quiet else {name: str(path) for name, path in real.items()}
        env = {
            **toolchain.env(),
            "PULUMI": str(toolchain.path("pulumi")),
            "KUBECONFIG": str(kubeconfig),
            "INFERENCE_PLATFORM_ASSETS": str(write_assets(root / "assets.json", chosen)),
            REGISTRY_VARIABLE: Location.of_file(shutil.copytree(registry, root / "registry") / "mlflow.db").uri,
        }
        return make_project(root, stack, env)

    return make


@pytest.fixture(scope="module")
def running(new_project: MakeProject, cluster: Cluster) -> Iterator[Project]:
    """The local stack as it stands after `pulumi up`, with every pod ready."""
    project = new_project(quiet=True)
    with every_pod_becomes_ready(cluster.kubeconfig, cluster.context):
        first = project.stack.up()
        assert first.ok, first.log
        yield project
        project.stack.check("destroy", "--yes")
