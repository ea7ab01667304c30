"""What a cluster remembers of itself, and what of it runs."""

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from tools.cluster import lifecycle
from tools.cluster.identity import ProcessIdentity
from tools.cluster.processes import Endpoints
from tools.cluster.spec import ClusterSpec, Layout
from tools.cluster.state import State, locked, loopback_endpoints, merged
from tools.cluster.status import status
from tools.errors import ToolError
from tools.files import write_atomically


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path))
    return tmp_path


def test_a_number_that_another_process_has_by_now_is_not_ours(tmp_path: Path) -> None:
    mine = ProcessIdentity.of(os.getpid())
    assert mine is not None
    other = ProcessIdentity(mine.pid, mine.start_time - 1)
    other.write(tmp_path / "pid")
    assert not other.alive()
    assert ProcessIdentity.read(tmp_path / "pid") is None
    other.signal(signal.SIGKILL)  # would end this test


def test_a_zombie_does_not_run() -> None:
    process = subprocess.Popen(["true"])
    identity = ProcessIdentity.of(process.pid)
    if identity is not None:
        assert identity.wait(5)
    assert ProcessIdentity.of(process.pid) is None
    process.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "start_time": 2, "more": 3}'])
def test_a_damaged_record_names_no_process(tmp_path: Path, text: str) -> None:
    (tmp_path / "pid").write_text(text)
    assert ProcessIdentity.read(tmp_path / "pid") is None


def test_a_written_file_has_its_mode_and_leaves_no_other(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "secret", "x", 0o600)
    assert (tmp_path / "a" / "secret").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["secret"]


def test_a_state_survives_its_file(cache: Path) -> None:
    layout = Layout.of("x")
    state = State(spec=ClusterSpec(name="x", nodes=2), endpoints=Endpoints(host="10.200.0.2"), block="10.200.0.0/16", kubectl="/bin/kubectl")
    assert State.read(layout) is None
    state.write(layout)
    assert State.read(layout) == state
    assert state.cluster.node_ips == ("10.200.0.2", "10.200.0.3")


def test_a_damaged_state_is_an_error_with_a_way_out(cache: Path) -> None:
    layout = Layout.of("x")
    write_atomically(layout.state, '{"spec": {}}')
    with pytest.raises(ToolError, match="cannot be read"):
        State.read(layout)


def test_nodes_are_added_but_never_taken_away_by_a_start() -> None:
    two = ClusterSpec(nodes=2, zones=("a", "b"))
    assert merged(ClusterSpec(nodes=1), two).nodes == 2
    assert merged(two, ClusterSpec(nodes=1, zones=("old", "x"))).zones == ("old", "b")


def test_a_cluster_does_not_change_its_kind() -> None:
    with pytest.raises(ToolError, match="exists as a control plane only"):
        merged(ClusterSpec(), ClusterSpec(control_plane_only=True))


def test_loopback_ports_differ_and_the_asked_one_is_kept() -> None:
    found = loopback_endpoints(6443)
    assert found.api_port == 6443
    assert len({found.api_port, found.etcd_port, found.etcd_peer_port}) == 3


def test_a_second_command_on_the_same_cluster_waits_for_the_first(cache: Path) -> None:
    order = []

    def second() -> None:
        with locked(Layout.of("x")):
            order.append("second")

    with locked(Layout.of("x")):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(5)
    assert order == ["first", "second"]


def test_a_cluster_that_never_was_is_absent(cache: Path) -> None:
    assert status("nothing").state == "absent"


def test_a_taken_port_changes_nothing(cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        spec = ClusterSpec(name="x", control_plane_only=True, api_port=server.getsockname()[1])
        with pytest.raises(ToolError, match="is taken"):
            lifecycle.start(spec, Path)
    assert not Layout.of("x").root.exists()


def test_removal_spares_what_is_kept_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "cluster"
    kept = root / "node-1" / "containerd"
    for directory in (kept / "deep", root / "node-1" / "kubelet", root / "pki"):
        directory.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)
    lifecycle._remove_except(root, {kept})
    assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*")) == ["node-1", "node-1/containerd", "node-1/containerd/deep"]
    lifecycle._remove_except(root, set())
    assert not root.exists()
    assert outside.exists()


def stopped(port: int) -> State:
    endpoints = Endpoints(
        host="127.0.0.1", api_port=port, etcd_port=loopback_endpoints(0).etcd_port, etcd_peer_port=loopback_endpoints(0).etcd_peer_port
    )
    return State(spec=ClusterSpec(control_plane_only=True), endpoints=endpoints, block=None, kubectl="/bin/kubectl")


def test_a_restarted_control_plane_keeps_its_ports_while_they_are_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert lifecycle._loopback(ClusterSpec(control_plane_only=True), stopped(port), running=False).api_port != port
    assert lifecycle._loopback(ClusterSpec(control_plane_only=True), stopped(port), running=False).api_port == port
    assert lifecycle._loopback(ClusterSpec(control_plane_only=True, api_port=port + 1), stopped(port), running=False).api_port == port + 1


def test_a_running_control_plane_does_not_change_its_port() -> None:
    with pytest.raises(ToolError, match="runs on port 40000"):
        lifecycle._loopback(ClusterSpec(control_plane_only=True, api_port=6443), stopped(40000), running=True)
