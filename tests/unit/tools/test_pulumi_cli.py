"""How the tools drive the pulumi command line."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.errors import ToolError
from tools.paths import REPO
from tools.pulumi_cli import PulumiStack, dead_locks
from tools.pulumi_events import changed_resources, lines_of


def stack(tmp_path, body):
    """A stack whose pulumi is a shell script."""
    program = tmp_path / "pulumi"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return PulumiStack(env={"PULUMI_BACKEND_URL": f"file://{tmp_path}/state"}, pulumi=str(program), project=tmp_path)


def event(operation, kind="kubernetes:core/v1:Service"):
    return {"resourcePreEvent": {"metadata": {"op": operation, "urn": f"urn:pulumi:local::p::{kind}::x", "type": kind}}}


def test_flags_stand_before_the_end_of_flags_so_that_a_negative_value_is_no_flag():
    command = PulumiStack(env={}, config_file=Path("file.yaml")).command("config", "set", "--path", "--", "models.m.canary.weight", "-1")
    assert command[:4] == ["pulumi", "config", "set", "--path"]
    assert command[-3:] == ["--", "models.m.canary.weight", "-1"]
    assert command[4:-3] == ["--stack", "local", "--non-interactive", "--config-file", "file.yaml"]


def test_a_command_that_knows_no_config_file_gets_none():
    assert "--config-file" not in PulumiStack(env={}, config_file=Path("file.yaml")).command("stack", "output")


@pytest.mark.parametrize(
    ("operation", "changes"), [("update", 1), ("create", 1), ("delete", 1), ("replace", 1), ("same", 0), ("refresh", 0), ("read", 0)]
)
def test_an_update_is_told_by_its_operations(operation, changes):
    assert len(changed_resources([event(operation)])) == changes


def test_the_stack_itself_is_no_change_and_an_object_counts_once():
    events = [event("update", "pulumi:pulumi:Stack"), event("update"), event("update"), {"diagnosticEvent": {}}]
    assert changed_resources(events) == (("update", "urn:pulumi:local::p::kubernetes:core/v1:Service::x"),)


def test_a_failed_command_is_told_with_its_output(tmp_path):
    with pytest.raises(ToolError, match="no such stack"):
        stack(tmp_path, "echo no such stack >&2; exit 255").check("stack", "output")


def test_a_failed_update_is_a_result_and_no_error(tmp_path):
    result = stack(tmp_path, f"echo '{json.dumps(event('create'))}'; echo boom >&2; exit 1").up()
    assert not result.ok
    assert len(result.changes) == 1
    assert "boom" in result.log


def line(**event):
    return json.dumps(event)


def test_a_person_is_told_each_change_once_it_is_done_and_the_totals():
    update = {"op": "update", "urn": "urn:pulumi:local::p::a$kubernetes:apps/v1:Deployment::magika-v1", "type": "kubernetes:apps/v1:Deployment"}
    assert list(lines_of(line(resourcePreEvent={"metadata": update}))) == []
    assert list(lines_of(line(resOutputsEvent={"metadata": update}))) == ["update Deployment magika-v1"]
    assert list(lines_of(line(resOutputsEvent={"metadata": {**update, "op": "same"}}))) == []
    assert list(lines_of(line(summaryEvent={"resourceChanges": {"same": 66, "update": 1}}))) == ["66 unchanged, 1 update"]


@pytest.mark.parametrize(("severity", "told"), [("error", True), ("info#err", True), ("warning", True), ("info", False), ("debug", False)])
def test_errors_and_warnings_are_told_and_nothing_else_that_is_said(severity, told):
    said = list(lines_of(line(diagnosticEvent={"severity": severity, "message": "first\n\nsecond\n"})))
    assert said == (["first", "second"] if told else [])


def test_what_a_policy_objects_to_is_told():
    assert list(lines_of(line(policyEvent={"message": "no weight\n", "enforcementLevel": "mandatory"}))) == ["no weight"]


def test_what_is_no_event_is_told_as_it_is():
    assert list(lines_of("error: the stack is locked\n")) == ["error: the stack is locked"]


def test_an_interrupted_update_ends_by_itself_before_the_command_does(tmp_path):
    """Killed instead, it would leave objects that its state does not know."""
    driven = stack(tmp_path, f"trap 'sleep 0.6; touch {tmp_path}/recorded; exit 1' INT; touch {tmp_path}/began; while :; do sleep 0.05; done")
    code = "import sys; from tools.pulumi_cli import PulumiStack\nPulumiStack(env={}, pulumi=sys.argv[1]).deploy()"
    command = ["env", "--default-signal=INT", sys.executable, "-c", code, driven.pulumi]
    with subprocess.Popen(command, cwd=REPO, start_new_session=True, stderr=subprocess.DEVNULL) as running:
        while not (tmp_path / "began").exists():
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
    assert (tmp_path / "recorded").exists()
    assert running.returncode != 0


def lock(backend, **changes):
    owner = {"pid": os.getpid(), "hostname": socket.gethostname(), **changes}
    file = backend / ".pulumi" / "locks" / "organization" / "p" / "local" / f"{len(list(backend.rglob('*.json')))}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(owner))
    return file


def test_only_the_lock_of_a_process_that_is_gone_from_this_machine_is_dead(tmp_path):
    gone = lock(tmp_path, pid=2**22 + 1)
    lock(tmp_path)
    lock(tmp_path, pid=2**22 + 1, hostname="another")
    assert dead_locks(tmp_path) == [gone]


@pytest.mark.parametrize(("pid", "cancelled"), [(2**22 + 1, True), (os.getpid(), False)], ids=["killed", "running"])
def test_the_lock_of_a_killed_run_is_cancelled_and_a_running_one_is_left(tmp_path, pid, cancelled):
    driven = stack(tmp_path, f'echo "$1" >> {tmp_path}/calls; [ "$2" = ls ] && echo \'[{{"name": "local"}}]\'; exit 0')
    lock(tmp_path / "state", pid=pid)
    driven.ensure()
    assert ("cancel" in (tmp_path / "calls").read_text().split()) is cancelled
