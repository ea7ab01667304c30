"""Which cluster a command is about."""

import argparse

import pytest

from tools.errors import ToolError
from tools.paths import cache_dir
from tools.target import command_line, local_target, own_target, target_of


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path))


def chosen(*arguments):
    return target_of(command_line("").parse_args(arguments))


def test_without_a_context_it_is_the_local_cluster_of_the_default_name():
    target = chosen()
    assert (target.cluster, target.context) == ("local", "inference-platform-local")
    assert target.kubeconfig == str(cache_dir() / "clusters" / "local" / "kubeconfig")


def test_the_environment_names_another_local_cluster(monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CLUSTER", "two")
    assert chosen().context == "inference-platform-two"


def test_a_context_is_the_users_own_cluster_whatever_the_environment_names(monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CLUSTER", "two")
    monkeypatch.setenv("KUBECONFIG", "/a:/b")
    target = chosen("--context", "kind-dev")
    assert (target.cluster, target.context, target.kubeconfig) == (None, "kind-dev", "/a:/b")


def test_without_a_variable_it_is_the_kubeconfig_of_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert own_target("kind-dev").kubeconfig == str(tmp_path / ".kube" / "config")


@pytest.mark.parametrize("context", ["", " ", "\t"])
def test_a_context_without_a_name_is_refused(context):
    with pytest.raises(ToolError, match="names no context"):
        own_target(context)


def test_contexts_that_look_alike_keep_folders_of_their_own():
    contexts = ("a/b", "a_b", "a:b", "A_b", "a_b ", "a" * 300, "a" * 301)
    assert len({own_target(context).folder for context in contexts}) == len(contexts)


@pytest.mark.parametrize("context", [".", "..", "../..", "/etc", "a/../../b", "x" * 1000, "ä"])
def test_a_context_never_leads_out_of_its_folder(context):
    """`make down` removes the folder."""
    folder = own_target(context).folder
    assert folder.resolve().parent == (cache_dir() / "contexts").resolve()
    folder.mkdir(parents=True)


def test_state_and_assets_lie_in_the_folder_of_the_target():
    for target in (local_target("two"), own_target("kind-dev")):
        assert {target.assets.parent, target.backend.parent} == {target.folder}


def test_the_argument_is_the_same_for_every_command():
    assert command_line("").parse_args([]) == argparse.Namespace(context=None)
