"""`make up` looks before it builds."""

import socket
from unittest.mock import Mock

import pytest
import yaml

from components.errors import AssetError, ConfigError, PlatformError
from tools import up as command
from tools.errors import ToolError
from tools.paths import REPO
from tools.target import local_target, own_target


@pytest.fixture(autouse=True)
def nothing_is_built(tmp_path, monkeypatch):
    """Fails the test when a step of the run begins."""
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    for step in ("ensure_packages", "ensure", "ensure_images"):
        monkeypatch.setattr(command, step, lambda *_: pytest.fail("a step began"))


@pytest.fixture
def reachable(tmp_path, monkeypatch):
    """A kubeconfig with the contexts `kind-dev` and `eks`, whose API server listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        write_kubeconfig(tmp_path / "config", server.getsockname()[1])
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        yield


def write_kubeconfig(file, port):
    clusters = [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}"}}]
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("kind-dev", "eks")]
    file.write_text(yaml.safe_dump({"clusters": clusters, "contexts": contexts, "current-context": "eks"}))


def test_a_machine_that_cannot_carry_the_cluster_is_told_so_first(monkeypatch, tmp_path):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ToolError, match="needs root") as refused:
        command.up(local_target("local"))
    assert "make up CONTEXT=" in refused.value.hint
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("reachable")
def test_a_context_that_is_not_there_is_refused_and_the_current_one_is_no_substitute():
    """pulumi/pulumi-kubernetes#1853."""
    with pytest.raises(AssetError, match="'kind-other' is not in"):
        command.up(own_target("kind-other"))


def test_a_cluster_that_does_not_answer_is_refused(tmp_path, monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        write_kubeconfig(tmp_path / "config", probe.getsockname()[1])
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        with pytest.raises(AssetError, match="unreachable"):
            command.up(own_target("kind-dev"))


@pytest.mark.usefixtures("reachable")
def test_a_cluster_without_a_way_for_images_is_refused():
    with pytest.raises(ToolError, match="neither kind's nor k3d's"):
        command.up(own_target("eks"))


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(("context", "registry"), [("kind-dev", None), ("eks", "registry.example")])
def test_a_cluster_of_ones_own_that_answers_may_be_used(context, registry):
    command.check(own_target(context), registry)


def test_no_kubeconfig_is_an_error_a_person_can_act_on(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(PlatformError, match="no kubeconfig at"):
        command.up(own_target("kind-dev"))


@pytest.mark.parametrize(("target", "forced"), [(local_target("local"), "true"), (own_target("kind-dev"), None)], ids=["local", "own"])
def test_objects_left_by_a_killed_update_are_taken_over_on_the_local_cluster_alone(target, forced, monkeypatch):
    stack = Mock()
    monkeypatch.setattr(command, "variables", lambda *_: {})
    monkeypatch.setattr(command, "local_stack", stack)
    command.deploy(target, Mock())
    assert stack.call_args.args[0].get("PULUMI_K8S_ENABLE_PATCH_FORCE") == forced
    stack.return_value.deploy.assert_called_once_with()


def test_the_programs_image_is_built_when_the_stack_file_has_a_front_and_else_not(tmp_path, monkeypatch):
    assert "apps" not in command.images_of_local_stack()
    document = yaml.safe_load((REPO / "stacks" / "Pulumi.local.yaml").read_text())
    document["config"]["inference-platform:models"]["magika"]["front"] = {}
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.setattr(command, "REPO", tmp_path)
    assert "apps" in command.images_of_local_stack()


@pytest.mark.usefixtures("reachable")
def test_a_stack_file_with_a_fault_is_refused_before_the_long_builds(tmp_path, monkeypatch):
    document = yaml.safe_load((REPO / "stacks" / "Pulumi.local.yaml").read_text())
    document["config"]["inference-platform:models"]["magika"]["canary"]["weight"] = 101
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.setattr(command, "REPO", tmp_path)
    with pytest.raises(ConfigError, match=r"models\.magika\.canary\.weight"):
        command.up(own_target("kind-dev"))


def test_the_registry_is_filled_before_the_stack_asks_it(monkeypatch, tmp_path):
    order = []
    for step in ("ensure_packages", "ensure", "ensure_images", "charts", "write_assets", "prepare_cluster", "demonstrate_all"):
        monkeypatch.setattr(command, step, lambda *_, **__: Mock())
    monkeypatch.setattr(command, "fill", lambda location: order.append(location.file))
    monkeypatch.setattr(command, "deploy", lambda target, _: order.append(target))
    target = local_target("local")
    command._bring_up(target, None)
    assert order == [target.registry, target]
