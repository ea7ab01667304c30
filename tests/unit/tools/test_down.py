"""Taking the platform down."""

import json
import socket

import pytest

from tests.unit.tools.commands import calls, scripted
from tools import down as command
from tools.errors import ToolError
from tools.target import local_target, own_target

STACKS = '[ "$1 $2" = "stack ls" ] && echo \'[{"name": "local"}]\''


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def pulumi(tmp_path, monkeypatch):
    """Call with the script that stands for pulumi."""

    def use(body):
        toolchain = scripted(tmp_path / "tools", pulumi=body)
        monkeypatch.setattr(command, "ensure", lambda: toolchain)

    return use


def verbs(tmp_path):
    return [line.split()[1] for line in calls(tmp_path / "tools")]


def test_the_local_cluster_goes_with_everything_on_it(monkeypatch, capsys):
    deleted: list[str] = []
    monkeypatch.setattr("tools.cluster.delete", deleted.append)
    command.down(local_target("two"))
    assert deleted == ["two"]
    assert "inference-platform-two: gone" in capsys.readouterr().out


def test_on_an_own_cluster_the_stacks_objects_go_and_then_its_state(tmp_path, pulumi):
    pulumi(f"{STACKS}; exit 0")
    target = own_target("kind-dev")
    target.backend.mkdir(parents=True)
    command.down(target)
    assert verbs(tmp_path) == ["stack", "destroy"]
    assert not target.folder.exists()


def test_state_stays_while_objects_are_left(pulumi):
    pulumi(f'{STACKS}; [ "$1" != destroy ]')
    target = own_target("kind-dev")
    target.backend.mkdir(parents=True)
    with pytest.raises(ToolError, match="destroy"):
        command.down(target)
    assert target.backend.exists()


def test_the_lock_of_a_killed_update_does_not_stand_in_the_way(tmp_path, pulumi):
    pulumi(f"{STACKS}; exit 0")
    target = own_target("kind-dev")
    lock = target.backend / ".pulumi" / "locks" / "organization" / "p" / "local" / "0.json"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"pid": 2**22 + 1, "hostname": socket.gethostname()}))
    command.down(target)
    assert verbs(tmp_path) == ["stack", "cancel", "destroy"]


def test_a_platform_that_never_got_a_stack_is_taken_down_too(tmp_path, pulumi):
    pulumi('[ "$1 $2" = "stack ls" ] && echo "[]"; exit 0')
    target = own_target("kind-dev")
    target.folder.mkdir(parents=True)
    command.down(target)
    assert not target.folder.exists()


def test_what_is_not_there_needs_no_toolchain(monkeypatch, capsys):
    monkeypatch.setattr(command, "ensure", lambda: pytest.fail("nothing is to be built"))
    command.down(own_target("kind-dev"))
    assert "nothing of the platform is left" in capsys.readouterr().out
