"""What cannot be is refused by the real command line: exit code, message, and a state whose resources are the same."""

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serving.registry import rules
from tests.preview.conftest import CONTEXTS, MakeProject
from tests.preview.project import Project, write_kubeconfig
from tools.cluster import Cluster

pytestmark = pytest.mark.preview


@pytest.fixture(scope="module")
def local(new_project: MakeProject) -> Project:
    return new_project(quiet=True)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("gatewy", {}, "gatewy: unknown key"),
        ("models.magika.canary.wieght", 5, "did you mean weight?"),
        ("models.magika.canary.weight", 120, "models.magika.canary.weight = 120"),
        ("models.magika.canary.weight", -1, "models.magika.canary.weight = -1"),
        ("models.magika.canary.weight", 99.5, "models.magika.canary.weight = 99.5"),
        ("models.magika.canary.weight", True, "models.magika.canary.weight = true"),
        ("models.magika.canary", {"version": 2}, "models.magika.canary.weight: required key is missing"),
        ("models.magika.canary.version", 9, "published versions: 1, 2"),
        ("models", {"Ma_gika": {"version": 1, "slo": {"p99Ms": 200}}}, "'Ma_gika' is no DNS label"),
        ("cluster.context", None, "cluster.context: required key is missing"),
        ("cluster.context", "nowhere", "contexts there: inference-platform-dev"),
        ("environment", "prod", "the stack is named 'local'"),
    ],
)
def test_bad_input_is_refused_before_anything_changes(local: Project, path: str, value: Any, said: str) -> None:
    """pulumi/pulumi-kubernetes#1853, istio/istio#50228: the ambient context, which exists, is never taken instead."""
    committed = local.stack_file.read_bytes()
    local.edit(path, value)
    try:
        done = local.stack.run("up", "--yes", "--skip-preview")
    finally:
        local.stack_file.write_bytes(committed)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    # The engine's own entry for the stack is all there ever is.
    assert [resource["type"] for resource in json.loads(local.resources())] == ["pulumi:pulumi:Stack"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("models.magika.canary.weight", 10, "models.magika.canary.weight = 10: version 2 is ARCHIVED in the registry and gets no traffic"),
        ("models.magika.version", 2, "models.magika.version = 2: is ARCHIVED in the registry, and the stable version must be ACTIVE"),
        ("registry.uri", "http://user:hunter2@127.0.0.1:9", "registry: registry http://127.0.0.1:9 cannot be used"),
        ("registry.uri", "sqlite:////nowhere/mlflow.db", "registry: registry sqlite:////nowhere/mlflow.db does not exist"),
    ],
)
def test_traffic_that_the_registry_forbids_is_refused_before_anything_changes(local: Project, path: str, value: Any, said: str) -> None:
    committed = local.stack_file.read_bytes()
    local.registry.take("magika", lambda model: rules.archive(model, 2))
    local.edit(path, value)
    if path == "models.magika.version":
        local.edit("models.magika.canary", None)
    try:
        done = local.stack.run("up", "--yes", "--skip-preview")
    finally:
        local.stack_file.write_bytes(committed)
        local.registry.take("magika", lambda model: rules.restore(model, 2))
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert "nothing was changed" in done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert [resource["type"] for resource in json.loads(local.resources())] == ["pulumi:pulumi:Stack"]


def test_a_weight_set_without_path_is_refused_with_the_right_command(local: Project) -> None:
    committed = local.stack_file.read_bytes()
    local.stack.check("config", "set", "models.magika.canary.weight", "25")
    try:
        done = local.stack.run("preview")
    finally:
        local.stack_file.write_bytes(committed)
    assert done.returncode != 0
    assert "pulumi config set --path models.magika.canary.weight <value>" in done.stdout + done.stderr


def test_an_unreachable_api_server_is_called_so_and_costs_no_state(running: Project, cluster: Cluster, tmp_path: Path) -> None:
    """pulumi/pulumi-kubernetes#1565."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{probe.getsockname()[1]}"
    away = write_kubeconfig(tmp_path / "config", cluster.kubeconfig, cluster.context, CONTEXTS, server=server)
    state = running.resources()
    cut_off = replace(running.stack, env={**running.stack.env, "KUBECONFIG": str(away)})
    for command in (("refresh", "--yes", "--skip-preview"), ("up", "--yes", "--skip-preview"), ("preview",)):
        done = cut_off.run(*command)
        assert done.returncode != 0, command
        assert "unreachable" in done.stdout + done.stderr, command
    assert running.resources() == state
