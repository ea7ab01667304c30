"""Control planes without nodes, as previews use them."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.cluster.conftest import Start
from tests.e2e.cluster.traces import traces
from tools.cluster import Cluster, ClusterSpec, delete, status, stop
from tools.cluster.identity import ProcessIdentity
from tools.cluster.kubectl import Kubectl
from tools.cluster.spec import Layout

pytestmark = pytest.mark.e2e


def test_data_survives_a_stop_and_delete_leaves_nothing(begin: Start, kubectl: Callable[[Cluster], Kubectl], name: str) -> None:
    spec = ClusterSpec(name=name, control_plane_only=True)
    kubectl(begin(spec)).run("create", "namespace", "kept")
    assert status(name).state == "ready"
    assert stop(name)
    assert status(name).state == "stopped"
    assert not stop(name)
    assert kubectl(begin(spec)).get("namespace", "kept") is not None
    delete(name, keep_images=False)
    assert status(name).state == "absent"
    assert traces(name) == []
    assert not Layout.of(name).root.exists()


def test_a_second_start_keeps_every_process(begin: Start, name: str) -> None:
    spec = ClusterSpec(name=name, control_plane_only=True)
    first = begin(spec)
    before = status(name).processes
    assert begin(spec) == first
    assert status(name).processes == before


def test_several_start_at_once_on_ports_of_their_own(begin: Start) -> None:
    names = [f"m{os.getpid() % 10**7}-{number}" for number in range(3)]
    try:
        with ThreadPoolExecutor(len(names)) as pool:
            clusters = list(pool.map(lambda each: begin(ClusterSpec(name=each, control_plane_only=True)), names))
        assert len({cluster.server for cluster in clusters}) == len(names)
        assert [status(each).state for each in names] == ["ready"] * len(names)
    finally:
        for each in names:
            delete(each, keep_images=False)


def test_start_goes_on_after_the_supervisor_was_killed(begin: Start, kubectl: Callable[[Cluster], Kubectl], name: str) -> None:
    spec = ClusterSpec(name=name, control_plane_only=True)
    kubectl(begin(spec)).run("create", "namespace", "kept")
    supervisor = ProcessIdentity.read(Layout.of(name).supervisor)
    assert supervisor is not None
    supervisor.signal(signal.SIGKILL)
    assert kubectl(begin(spec)).get("namespace", "kept") is not None


def test_the_kubeconfig_is_its_owners_alone(begin: Start, name: str) -> None:
    cluster = begin(ClusterSpec(name=name, control_plane_only=True))
    assert cluster.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert cluster.context == f"inference-platform-{name}"
