"""What `make` hands to the tools. Only dry runs: nothing is started, and nothing is taken down."""

import shlex
import subprocess

import pytest

from tools.errors import ToolError
from tools.paths import REPO
from tools.target import command_line, target_of


def last_command(*arguments: str) -> list[str]:
    """The words of the last command that `make` would run."""
    done = subprocess.run(["make", "--dry-run", *arguments], cwd=REPO, capture_output=True, text=True, check=True)
    return shlex.split(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("context", ["kind-dev", "arn:aws:eks:eu-west-1:1:cluster/x", "two words", "it's", ";id", "--help", ""])
def test_a_context_arrives_as_one_word_whatever_is_in_it(context: str) -> None:
    assert last_command("down", f"CONTEXT={context}")[-1] == f"--context={context}"


def test_a_command_without_a_context_names_none() -> None:
    assert last_command("down")[-1] == "tools.down"


def test_an_empty_context_is_refused_and_never_the_local_cluster() -> None:
    with pytest.raises(ToolError, match="names no context"):
        target_of(command_line("").parse_args(last_command("down", "CONTEXT=")[-1:]))


def test_an_empty_cluster_name_is_refused_and_never_the_default_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make down CLUSTER=$UNSET` would delete the cluster `local`."""
    monkeypatch.setenv("INFERENCE_PLATFORM_CLUSTER", "")
    with pytest.raises(ToolError, match="cluster name ''"):
        target_of(command_line("").parse_args([]))


@pytest.mark.parametrize("name", ["x;id", "", "a'b"])
def test_a_cluster_name_arrives_as_one_word_too(name: str) -> None:
    assert last_command("cluster", f"CLUSTER={name}")[-1] == f"--name={name}"
