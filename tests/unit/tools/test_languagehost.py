"""The language host as a process, with programs as a person would write them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import analyzer_pb2, language_pb2, language_pb2_grpc

from tests.unit.tools.fake_engine import fake_engine
from tools.languagehost.interpreter import HostError, interpreter_of
from tools.languagehost.policy import stack_environment
from tools.languagehost.server import install_commands
from tools.paths import REPO
from tools.toolchain.languagehost import install_language_host


@pytest.fixture
def host(tmp_path, monkeypatch):
    """The installed wrapper, started as the engine starts it; the process and a stub that talks to it."""
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    wrapper = install_language_host(tmp_path / "bin")
    process = subprocess.Popen([wrapper, "127.0.0.1:1"], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    with grpc.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}") as channel:
        yield process, language_pb2_grpc.LanguageRuntimeStub(channel)
    process.terminate()
    process.communicate(timeout=10)


@pytest.fixture
def engine():
    with fake_engine() as engine:
        yield engine


def _info(project, **options):
    settings = struct_pb2.Struct()
    settings.update(options)
    return language_pb2.ProgramInfo(root_directory=str(project), program_directory=str(project), entry_point=".", options=settings)


def _request(engine, project, text, **options):
    project.mkdir(exist_ok=True)
    (project / "__main__.py").write_text(text)
    return language_pb2.RunRequest(
        project="demo",
        stack="dev",
        pwd=str(project),
        args=[engine.address],
        monitor_address=engine.address,
        parallel=4,
        config={"demo:size": "3"},
        info=_info(project, **options),
    )


def test_a_second_run_sees_no_module_of_the_first(host, engine, tmp_path):
    request = _request(engine, tmp_path / "project", "import state, pulumi\nstate.runs.append(1)\npulumi.export('runs', len(state.runs))\n")
    (tmp_path / "project" / "state.py").write_text("runs = []\n")
    for _ in range(2):
        assert host[1].Run(request) == language_pb2.RunResponse()
    assert engine.outputs == [{"runs": 1.0}, {"runs": 1.0}]


def test_a_second_run_sees_the_edit_of_a_module(host, engine, tmp_path):
    request = _request(engine, tmp_path / "project", "import state, pulumi\npulumi.export('value', state.value)\n")
    for value in ("one", "three"):
        (tmp_path / "project" / "state.py").write_text(f"value = {value!r}\n")
        host[1].Run(request)
    assert engine.outputs == [{"value": "one"}, {"value": "three"}]


def test_configuration_reaches_the_program(host, engine, tmp_path):
    host[1].Run(_request(engine, tmp_path / "project", "import pulumi\npulumi.export('size', pulumi.Config('demo').require_int('size'))\n"))
    assert engine.outputs == [{"size": 3.0}]


def test_an_exception_is_reported_once_with_the_programs_own_frames(host, engine, tmp_path):
    response = host[1].Run(_request(engine, tmp_path / "project", "raise ValueError('bad program')\n"))
    assert response == language_pb2.RunResponse(bail=True)
    [message] = engine.errors
    assert message.endswith("ValueError: bad program\n")
    assert str(tmp_path / "project" / "__main__.py") in message
    assert "runpy" not in message
    assert "languagehost" not in message


def test_an_error_the_program_states_is_reported_without_a_traceback(host, engine, tmp_path):
    host[1].Run(_request(engine, tmp_path / "project", "import pulumi\nraise pulumi.RunError('weights must sum to 100')\n"))
    assert engine.errors == ["weights must sum to 100"]


@pytest.mark.parametrize(("end", "said"), [("sys.exit(3)", "exit code 3"), ("os.kill(os.getpid(), 9)", "signal 9")])
def test_a_program_that_ends_itself_is_not_taken_for_a_success(host, engine, tmp_path, end, said):
    response = host[1].Run(_request(engine, tmp_path / "project", f"import os, sys\n{end}\n"))
    assert said in response.error


def test_a_missing_virtual_environment_is_named_before_anything_runs(host, engine, tmp_path):
    response = host[1].Run(_request(engine, tmp_path / "project", "", virtualenv=".venv"))
    assert str(tmp_path / "project" / ".venv") in response.error
    assert "make venv" in response.error


def _running(pid):
    """Whether the process is there and not only waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_quietly_with_its_program_when_told_to(host, engine, tmp_path, number):
    process, stub = host
    call = stub.Run.future(_request(engine, tmp_path / "project", "import os, time\nopen('up', 'w').write(f'{os.getpid()}\\n')\ntime.sleep(60)\n"))
    up = tmp_path / "project" / "up"
    _wait_until(lambda: up.exists() and up.read_text().endswith("\n"))
    process.send_signal(number)
    assert process.wait(timeout=10) == 0
    assert not _running(int(up.read_text()))
    assert process.stderr.read() == ""
    assert call.exception(timeout=10) or call.result().error


def test_it_ends_when_the_engine_is_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    wrapper = install_language_host(tmp_path / "bin")
    starter = (
        f"import subprocess, sys; print(subprocess.Popen([{str(wrapper)!r}], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).pid, flush=True)"
    )
    pid = int(subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=True, timeout=20).stdout)
    _wait_until(lambda: not _running(pid))


def test_a_plugins_output_and_exit_code_are_handed_on(host, tmp_path):
    (tmp_path / "__main__.py").write_text("import os, sys\nprint(os.environ['NAME'], sys.argv[1])\nprint('note', file=sys.stderr)\nsys.exit(4)\n")
    request = language_pb2.RunPluginRequest(
        pwd=str(tmp_path), args=["127.0.0.1:1"], env=[f"PATH={os.environ['PATH']}", "NAME=value"], kind="resource", info=_info(tmp_path)
    )
    responses = list(host[1].RunPlugin(request))
    assert b"".join(response.stdout for response in responses) == b"value 127.0.0.1:1\n"
    assert b"".join(response.stderr for response in responses) == b"note\n"
    assert responses[-1].exitcode == 4


def test_about_names_the_projects_python(host, tmp_path):
    about = host[1].About(language_pb2.AboutRequest(info=_info(tmp_path)))
    assert about.executable == sys.executable
    assert about.version == ".".join(map(str, sys.version_info[:3]))


def test_a_lock_with_hashes_is_installed_as_it_stands(tmp_path):
    (tmp_path / "requirements.txt").write_text("one==1.0 --hash=sha256:00\n")
    create, install = install_commands(_info(tmp_path, virtualenv="env"))
    assert create[-2:] == ["venv", str(tmp_path / "env")]
    assert {"--no-deps", "--require-hashes"} <= set(install)


def test_another_package_manager_is_refused_by_name(tmp_path):
    with pytest.raises(HostError, match="'uv'"):
        interpreter_of(tmp_path, {"toolchain": "uv"})


def test_a_policy_pack_is_told_which_stack_it_judges():
    request = analyzer_pb2.AnalyzerStackConfigureRequest(stack="prod", project="demo", dry_run=True, config={"demo:size": "3"})
    environment = stack_environment(request)
    assert (environment["PULUMI_STACK"], environment["PULUMI_DRY_RUN"], environment["PULUMI_CONFIG"]) == ("prod", "true", '{"demo:size": "3"}')


def test_it_stands_without_the_clone():
    for source in (REPO / "tools" / "languagehost").glob("*.py"):
        assert "from tools" not in source.read_text(), source
