"""What a user's own cluster holds already is not taken over."""

import json

import pytest

from components import labels
from components.addons import istio_values
from components.inference import namespace_manifest
from components.traffic import gateway_manifest
from tests.unit.tools.commands import calls, scripted
from tools.errors import ToolError
from tools.own_cluster import check_vacant
from tools.target import own_target

OURS = {labels.PART_OF: labels.PLATFORM}
SIMULATOR = {"metadata": {"name": "gpu-simulator"}}


@pytest.fixture(autouse=True)
def kubeconfig(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBECONFIG", "/a:/b")


def namespace(name, **own_labels):
    return {"metadata": {"name": name, **own_labels}}


def node(name, capacity):
    return {"metadata": {"name": name}, "status": {"capacity": capacity}}


def checked(tmp_path, *, namespaces=(), nodes=(), daemonsets=()):
    """Run the check on a cluster that has these objects."""
    answers = {"namespaces": namespaces, "nodes": nodes, "daemonsets": daemonsets}
    cases = " ".join(f"{kind}) echo '{json.dumps({'items': list(found)})}';;" for kind, found in answers.items())
    check_vacant(
        own_target("kind-dev"), scripted(tmp_path / "tools", kubectl=f'echo "$KUBECONFIG" > {tmp_path}/kubeconfig; case "$4" in {cases} esac')
    )


def test_an_empty_cluster_may_be_used_and_is_named_in_every_call(tmp_path):
    checked(tmp_path, namespaces=[namespace("default")], nodes=[node("a", {"cpu": "2"})])
    assert {line.split(" get ")[0] for line in calls(tmp_path / "tools")} == {"kubectl --context kind-dev"}
    assert (tmp_path / "kubeconfig").read_text() == "/a:/b\n"


@pytest.mark.parametrize("name", ["istio-system", "inference-gateway", "inference"])
def test_a_namespace_of_somebody_else_is_refused_by_name(tmp_path, name):
    with pytest.raises(ToolError, match=f"namespace {name} of context kind-dev was not made by this platform"):
        checked(tmp_path, namespaces=[namespace("default"), namespace(name, labels={"team": "theirs"})])


def test_namespaces_of_an_earlier_run_are_ours(tmp_path):
    checked(tmp_path, namespaces=[namespace(name, labels=OURS) for name in ("istio-system", "inference-gateway", "inference")])


def test_every_namespace_we_make_carries_the_label_that_tells_it():
    made = (istio_values.build_namespace(), namespace_manifest.build_namespace("inference"), gateway_manifest.build_namespace("inference-gateway"))
    assert all(OURS.items() <= metadata["labels"].items() for metadata in made)


def test_real_gpus_are_not_hidden_by_simulated_ones(tmp_path):
    with pytest.raises(ToolError, match="node b of context kind-dev has GPUs") as refused:
        checked(tmp_path, nodes=[node("a", {"nvidia.com/gpu": "0"}), node("b", {"nvidia.com/gpu": "8"})])
    assert "cluster.simulatedGpus" in refused.value.hint


def test_simulated_gpus_of_an_earlier_run_are_ours(tmp_path):
    checked(tmp_path, nodes=[node("a", {"nvidia.com/gpu": "4"})], daemonsets=[SIMULATOR])


def test_a_cluster_that_may_not_be_read_is_told_with_the_reason(tmp_path):
    toolchain = scripted(tmp_path / "tools", kubectl="echo forbidden >&2; exit 1")
    with pytest.raises(ToolError, match="cannot be listed: forbidden"):
        check_vacant(own_target("kind-dev"), toolchain)
