"""The variables that `make env` prints."""

import subprocess
from dataclasses import replace

import pytest

from stacks.assets import ASSETS_VARIABLE
from stacks.providers import CONTEXT_OVERRIDE
from tests.unit.tools.commands import scripted
from tools.environment import local_stack, shell_lines, variables
from tools.target import local_target, own_target


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """With what a shell would take apart in its name."""
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "it's a $HOME cache"))


@pytest.fixture
def toolchain(tmp_path):
    return scripted(tmp_path / "tools of mine", pulumi="echo ours", kubectl="")


def evaluated(lines):
    """The variables of a shell with nothing in it that evaluates the lines."""
    done = subprocess.run(
        ["/bin/bash", "-c", 'eval "$1"; env -0', "bash", lines], env={"PATH": "/usr/bin:/bin"}, check=True, capture_output=True, text=True
    )
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)


@pytest.mark.parametrize("target", [lambda: local_target("two"), lambda: own_target("kind-dev")], ids=["local", "own"])
def test_a_shell_gets_what_the_tools_use(target, toolchain):
    expected = variables(target(), toolchain)
    shell = evaluated(shell_lines(target(), toolchain))
    assert {name: value for name, value in expected.items() if name != "PATH"}.items() <= shell.items()


def test_the_shells_own_path_stays_behind_ours(toolchain):
    path = evaluated(shell_lines(local_target("local"), toolchain))["PATH"].split(":")
    assert path[0] == str(toolchain.path("pulumi").parent)
    assert path[-2:] == ["/usr/bin", "/bin"]


def test_pulumi_finds_backend_stack_and_passphrase(toolchain):
    target = local_target("two")
    found = variables(target, toolchain)
    assert found["PULUMI_BACKEND_URL"] == f"file://{target.backend}"
    assert found["PULUMI_STACK"] == "local"
    assert found["PULUMI_CONFIG_PASSPHRASE"]
    assert found[ASSETS_VARIABLE] == str(target.assets)


def test_the_context_is_always_named():
    toolchain = scripted(local_target("two").folder)
    assert variables(local_target("two"), toolchain)[CONTEXT_OVERRIDE] == "inference-platform-two"
    assert variables(own_target("kind-dev"), toolchain)[CONTEXT_OVERRIDE] == "kind-dev"


def test_an_own_cluster_is_no_local_one(toolchain):
    assert variables(local_target("two"), toolchain)["INFERENCE_PLATFORM_CLUSTER"] == "two"
    assert "INFERENCE_PLATFORM_CLUSTER" not in variables(own_target("kind-dev"), toolchain)


def test_the_stack_is_driven_with_the_toolchains_pulumi(toolchain):
    stack = local_stack(variables(local_target("two"), toolchain), toolchain)
    assert stack.stack == "local"
    assert replace(stack, project=toolchain.pulumi_home.parent).check_global("version") == "ours\n"
