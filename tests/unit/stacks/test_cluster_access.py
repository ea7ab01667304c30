"""The right cluster or none: contexts, reachability, and a provider that is equal on every machine."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from components.errors import AssetError
from stacks.config import StackConfig
from stacks.kubeconfig import Access, check_reachable, find_access, kubeconfig_paths
from stacks.loader import load
from stacks.providers import CONTEXT_OVERRIDE, check_cluster, cluster_context
from tests.documents import as_pulumi_passes, built, changed, document


def config(stack: str = "local", changes: dict[str, Any] | None = None) -> StackConfig:
    return load(stack, as_pulumi_passes(changes or document(stack)))


def write_kubeconfig(path: Path, contexts: dict[str, str], *, current: str = "", **cluster: str) -> Path:
    """A kubeconfig with one cluster per context; values are the servers."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in contexts],
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}} for name, server in contexts.items()],
        "users": [{"name": "u", "user": {"token": "hunter2"}}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def test_a_context_that_is_not_in_the_kubeconfig_is_refused_with_those_that_are(tmp_path: Path) -> None:
    """pulumi/pulumi-kubernetes#1853: the current context is no substitute."""
    path = write_kubeconfig(tmp_path / "config", {"prod": "https://a", "staging": "https://b"}, current="prod")
    with pytest.raises(AssetError) as caught:
        find_access([path], "inference-platform-dev")
    assert "'inference-platform-dev' is not in" in caught.value.message
    assert "contexts there: prod, staging" in caught.value.hint


def test_no_kubeconfig_at_all_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="no kubeconfig at"):
        find_access([tmp_path / "missing"], "c")


@pytest.mark.parametrize(
    "content",
    [
        b"[",
        b"just text",
        b"- a",
        b"\xff\xfe",
        b"contexts: text",
        b"contexts: [{}]",
        b"contexts: [{name: c}]",
        b"contexts: [{name: c, context: text}]",
        b"contexts: [{name: c, context: {cluster: c}}]\nclusters: [1]",
    ],
)
def test_a_broken_kubeconfig_is_an_error_of_ours(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(AssetError):
        find_access([path], "c")


def test_an_api_server_that_refuses_connections_is_called_unreachable(closed_port: int) -> None:
    """pulumi/pulumi-kubernetes#1565."""
    with pytest.raises(AssetError) as caught:
        check_reachable(Access("c", f"https://127.0.0.1:{closed_port}", through_proxy=False))
    assert "is unreachable" in caught.value.message
    assert "refused" in caught.value.message


@pytest.mark.parametrize("server", ["https://127.0.0.1:port", "https://127.0.0.1:99999", "https://", "127.0.0.1"])
def test_an_address_that_is_none_is_called_unreachable(server: str) -> None:
    with pytest.raises(AssetError, match="unreachable"):
        check_reachable(Access("c", server, through_proxy=False))


def test_an_api_server_that_listens_is_reachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(Access("c", f"https://127.0.0.1:{server.getsockname()[1]}", through_proxy=False))


def test_behind_a_proxy_only_the_provider_can_tell(tmp_path: Path, closed_port: int) -> None:
    path = write_kubeconfig(tmp_path / "config", {"c": f"https://127.0.0.1:{closed_port}"}, **{"proxy-url": "http://proxy.test"})
    check_reachable(find_access([path], "c"))


def test_the_first_kubeconfig_of_several_that_names_a_context_wins(tmp_path: Path) -> None:
    first, second = write_kubeconfig(tmp_path / "a", {"c": "https://first"}), write_kubeconfig(tmp_path / "b", {"c": "https://second"})
    assert find_access([first, second], "c").server == "https://first"


def test_an_explicit_kubeconfig_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/a:/b")
    assert kubeconfig_paths(None) == [Path("/a"), Path("/b")]
    assert kubeconfig_paths("~/own") == [Path.home() / "own"]
    monkeypatch.delenv("KUBECONFIG")
    assert kubeconfig_paths(None) == [Path.home() / ".kube" / "config"]


def test_the_cluster_is_checked_before_anything_is_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    path = write_kubeconfig(tmp_path / "config", {"inference-platform-local": f"https://127.0.0.1:{closed_port}"})
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(AssetError, match="unreachable"):
        check_cluster(config())


@pytest.mark.parametrize(("stack", "expected"), [("local", "kind-mine"), ("dev", "inference-platform-dev"), ("prod", "inference-platform-prod")])
def test_the_shell_can_move_the_local_stack_only(stack: str, expected: str) -> None:
    assert cluster_context(config(stack), {CONTEXT_OVERRIDE: "kind-mine"}) == expected


def test_without_the_variable_the_stack_file_decides() -> None:
    assert cluster_context(config(), {}) == "inference-platform-local"


def provider_inputs(changes: dict[str, Any] | None = None) -> Any:
    return built(changes or document()).one("kubernetes").inputs


def test_the_provider_is_the_same_for_every_user_and_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = provider_inputs()
    monkeypatch.setenv("KUBECONFIG", "/somewhere/else")
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    assert provider_inputs() == before
    assert before["kubeconfig"] == ""
    assert before["context"] == "inference-platform-local"


def test_a_cluster_that_does_not_answer_is_never_taken_for_empty() -> None:
    """pulumi/pulumi-kubernetes#1565."""
    inputs = provider_inputs()
    assert inputs["deleteUnreachable"] == "false"
    assert inputs["skipUpdateUnreachable"] == "false"


def test_another_context_is_another_cluster() -> None:
    assert provider_inputs(changed("cluster.context", "other"))["clusterIdentifier"] == "other"


def test_a_kubeconfig_named_in_the_stack_file_is_used_as_written() -> None:
    assert provider_inputs(changed("cluster.kubeconfig", "~/.kube/dev"))["kubeconfig"] == "~/.kube/dev"


@pytest.mark.parametrize("server", ["5", "[a]", "null", ".nan", "{a: 1}"])
def test_a_server_that_is_no_text_is_an_error_of_ours(tmp_path: Path, server: str) -> None:
    path = tmp_path / "config"
    path.write_text(f"contexts: [{{name: c, context: {{cluster: k}}}}]\nclusters: [{{name: k, cluster: {{server: {server}}}}}]\n", encoding="utf-8")
    with pytest.raises(AssetError, match="is no address"):
        find_access([path], "c")


@pytest.mark.parametrize("path", ["x" * 300, "a\0b", "~nobody-of-that-name/config"])
def test_a_path_that_cannot_be_is_an_error_of_ours(path: str) -> None:
    with pytest.raises(AssetError):
        find_access(kubeconfig_paths(path), "c")
