"""Clusters with nodes: what runs on them, what happens when parts die, what is left in the end."""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from functools import partial

import pytest

from tests.e2e.cluster.conftest import Start
from tests.e2e.cluster.traces import host_rules, traces
from tests.e2e.waits import wait_for
from tools.cluster import Cluster, ClusterSpec, delete, status, stop
from tools.cluster.identity import ProcessIdentity
from tools.cluster.kubectl import Kubectl
from tools.cluster.spec import Layout
from tools.cluster.status import ClusterStatus

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(os.geteuid() != 0, reason="nodes need root")]

NODE_PORT = 31888
PROCESSES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "containerd-1", "kubelet-1", "kube-proxy-1")
WEB = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "health", "namespace": "kube-system"},
    "spec": {"type": "NodePort", "selector": {"k8s-app": "kube-dns"}, "ports": [{"port": 80, "targetPort": 8080, "nodePort": NODE_PORT}]},
}


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}:{NODE_PORT}/health", timeout=1) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def was_restarted(process: str, found: ClusterStatus) -> bool:
    return any(each.name == process and each.restarts > 0 for each in found.processes)


def is_ready(found: ClusterStatus) -> bool:
    return found.state == "ready"


def test_a_pod_is_served_read_entered_and_brought_back_after_a_stop(begin: Start, kubectl: Callable[[Cluster], Kubectl], name: str) -> None:
    before = host_rules()
    cluster = begin(ClusterSpec(name=name))
    cli = kubectl(cluster)
    cli.apply([WEB])
    wait_for("the node port", lambda: answers(cluster.node_ip), bool, seconds=20)
    assert "CoreDNS" in cli.run("exec", "--namespace", "kube-system", "deployment/coredns", "--", "coredns", "-version")
    assert "CoreDNS" in cli.run("logs", "--namespace", "kube-system", "deployment/coredns")
    stop(name)
    assert traces(name) == []
    assert host_rules() == before
    assert begin(ClusterSpec(name=name)) == cluster
    wait_for("the node port after a restart", lambda: answers(cluster.node_ip), bool, seconds=20)
    delete(name, keep_images=False)
    assert traces(name) == []
    assert host_rules() == before
    assert not Layout.of(name).root.exists()


def test_each_killed_process_comes_back_and_pods_stay(begin: Start, kubectl: Callable[[Cluster], Kubectl], name: str) -> None:
    cluster = begin(ClusterSpec(name=name))
    pods = ("pods", "--namespace", "kube-system")
    before = kubectl(cluster).get(*pods)
    assert before is not None
    for process in PROCESSES:
        [victim] = [each for each in status(name).processes if each.name == process]
        os.kill(victim.pid, signal.SIGKILL)
        wait_for(f"{process} started again", lambda: status(name), partial(was_restarted, process), seconds=20)
    wait_for("the cluster ready", lambda: status(name), is_ready, seconds=60)
    assert begin(ClusterSpec(name=name)) == cluster
    after = kubectl(cluster).get(*pods)
    assert after is not None
    assert [pod["metadata"]["uid"] for pod in after["items"]] == [pod["metadata"]["uid"] for pod in before["items"]]
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in after["items"]] == [0]


def test_a_second_node_joins_a_running_cluster_in_a_zone_of_its_own(begin: Start, kubectl: Callable[[Cluster], Kubectl], name: str) -> None:
    begin(ClusterSpec(name=name))
    before = status(name).processes
    cluster = begin(ClusterSpec(name=name, nodes=2))
    assert status(name).processes[: len(before)] == before
    cli = kubectl(cluster)
    cli.apply([WEB])
    for address in cluster.node_ips:
        wait_for(f"node port at {address}", partial(answers, address), bool, seconds=20)
    nodes = cli.get("nodes")
    assert nodes is not None
    assert [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes["items"]] == ["local-a", "local-b"]
    delete(name, keep_images=False)
    assert traces(name) == []


def test_nothing_outlives_a_killed_supervisor_but_what_the_next_start_clears(begin: Start, name: str) -> None:
    cluster = begin(ClusterSpec(name=name))
    supervisor = ProcessIdentity.read(Layout.of(name).supervisor)
    assert supervisor is not None
    supervisor.signal(signal.SIGKILL)
    wait_for("its processes gone", lambda: [trace for trace in traces(name) if trace.startswith("process")], lambda left: not left, seconds=20)
    assert begin(ClusterSpec(name=name)) == cluster
    assert status(name).state == "ready"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_start_interrupted_anywhere_is_finished_by_the_next(
    command: Callable[..., subprocess.Popen[str]], name: str, number: signal.Signals
) -> None:
    for seconds in (0.7, 1.0, 1.5, 2.5, 5.0):
        process = command("start", "--name", name)
        time.sleep(seconds)
        process.send_signal(number)
        process.communicate(timeout=20)
    process = command("start", "--name", name)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    assert status(name).state == "ready"
    delete(name, keep_images=False)
    assert traces(name) == []


def test_two_clusters_do_not_meet(begin: Start, name: str) -> None:
    other = f"o{name[1:]}"
    try:
        one, two = begin(ClusterSpec(name=name)), begin(ClusterSpec(name=other))
        assert one.node_ip != two.node_ip
        assert status(name).state == status(other).state == "ready"
        delete(other, keep_images=False)
        assert traces(other) == []
        assert status(name).state == "ready"
    finally:
        delete(other, keep_images=False)


def test_kept_images_need_no_second_import(begin: Start, name: str) -> None:
    begin(ClusterSpec(name=name))
    delete(name, keep_images=True)
    assert traces(name) == []
    assert [entry.name for entry in Layout.of(name).root.iterdir()] == ["node-1"]
    began = time.monotonic()
    begin(ClusterSpec(name=name))
    assert time.monotonic() - began < 60
    assert status(name).state == "ready"
