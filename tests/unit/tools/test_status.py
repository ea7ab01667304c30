"""What `make status` says."""

import json

import pytest

from serving.registry.store import Store
from tests.registries import record, registered
from tests.unit.tools.commands import scripted
from tools import status as command
from tools.cluster.status import ClusterStatus
from tools.target import local_target, own_target

OUTPUTS = {"models": {"magika": {"host": "magika.inference.test", "versions": [1, 2], "weights": {"v1": 75, "v2": 25}}}}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command with these arguments on a stack with OUTPUTS."""
    toolchain = scripted(tmp_path / "tools", pulumi=f"echo '{json.dumps(OUTPUTS)}'")
    monkeypatch.setattr(command, "ensure", lambda: toolchain)

    def main(*arguments):
        monkeypatch.setattr("sys.argv", ["status", *arguments])
        return command.main()

    return main


def test_models_are_told_with_weights_and_host():
    assert command.describe_models(OUTPUTS) == ["  magika: v1 75 %, v2 25 %   (Host: magika.inference.test)"]


@pytest.mark.parametrize("outputs", [{}, {"models": {}}])
def test_no_model_is_told_with_the_way_to_one(outputs):
    assert command.describe_models(outputs) == ["  none; run make up"]


def test_a_cluster_that_is_not_there_is_told_and_no_success(run, capsys):
    assert run() == 1
    assert capsys.readouterr().out.splitlines() == ["cluster local: absent", "the platform does not run: make up"]


def test_an_own_cluster_without_a_platform_is_no_success(run, capsys):
    assert run("--context", "kind-dev") == 1
    assert capsys.readouterr().out.splitlines() == ["cluster kind-dev (yours)", "the platform does not run: make up"]


def test_an_own_cluster_with_a_platform_tells_its_models(run, capsys):
    own_target("kind-dev").backend.mkdir(parents=True)
    assert run("--context", "kind-dev") == 0
    assert "magika: v1 75 %, v2 25 %" in capsys.readouterr().out


def test_the_versions_are_told_with_their_states(run, capsys, registry):
    target = own_target("kind-dev")
    target.backend.mkdir(parents=True)
    target.registry.parent.mkdir()
    registered(Store(registry), record(1))
    registry.file.rename(target.registry)
    assert run("--context", "kind-dev") == 0
    assert ["magika", "1", "TESTING"] in [line.split()[:3] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(("state", "deployed", "running"), [("ready", True, True), ("ready", False, False), ("stopped", True, False)])
def test_a_platform_runs_when_its_cluster_does_and_something_was_deployed(monkeypatch, state, deployed, running):
    monkeypatch.setattr("tools.cluster.status", lambda name: ClusterStatus(name=name, state=state, server="", kubeconfig="", nodes=(), processes=()))
    target = local_target("two")
    if deployed:
        target.backend.mkdir(parents=True)
    lines, runs = command.describe_cluster(target)
    assert lines == [f"cluster two: {state}"]
    assert runs is running
