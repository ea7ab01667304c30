"""The Python environment: made once, never half, linked from every clone."""

import subprocess
import sys

import pytest

from tools import bootstrap, paths


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with two requirements and an empty cache; nothing is really installed."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("one==1.0 \\\n    --hash=sha256:00\ntwo==2.0 \\\n    --hash=sha256:00\n")
    monkeypatch.setattr(bootstrap, "REPO", tmp_path)
    monkeypatch.setattr(bootstrap, "REQUIREMENTS", requirements)
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bootstrap, "install", lambda _python: None)
    monkeypatch.setattr("venv.create", lambda place, **_options: (place / "bin").mkdir(parents=True))
    return tmp_path


def test_an_old_python_gets_one_sentence_and_nothing_is_made(clone, monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 10, 0))
    assert bootstrap.main() == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "Python 3.11 or newer is needed" in error
    assert not (clone / "cache").exists()


def test_the_link_leads_to_an_environment_in_the_cache(clone):
    assert bootstrap.main() == 0
    assert (clone / ".venv").resolve().is_relative_to(clone / "cache" / "venv")
    assert (clone / ".venv" / "complete").exists()


def test_a_second_run_changes_nothing(clone, monkeypatch):
    bootstrap.main()
    monkeypatch.setattr(bootstrap, "create", lambda _environment: pytest.fail("made twice"))
    assert bootstrap.main() == 0


def test_an_interrupted_run_is_begun_anew(clone, monkeypatch):
    def interrupt(python):
        (python.parent / "half").touch()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "install", interrupt)
        with pytest.raises(KeyboardInterrupt):
            bootstrap.main()
    assert not (clone / ".venv").exists()
    assert bootstrap.main() == 0
    assert not (clone / ".venv" / "bin" / "half").exists()


def test_a_failing_pip_ends_with_one_and_leaves_no_link(clone, monkeypatch, capsys):
    def fail(_python):
        raise subprocess.CalledProcessError(1, "pip install")

    monkeypatch.setattr(bootstrap, "install", fail)
    assert bootstrap.main() == 1
    assert "pip install" in capsys.readouterr().err
    assert not (clone / ".venv").exists()


def test_an_edit_of_the_requirements_moves_the_link_to_a_new_environment(clone):
    bootstrap.main()
    before = (clone / ".venv").resolve()
    (clone / "requirements.txt").write_text("one==1.1 --hash=sha256:00\n")
    assert bootstrap.main() == 0
    assert (clone / ".venv").resolve() != before
    assert before.exists()


def test_a_persons_own_environment_of_that_name_is_left_alone(clone, capsys):
    (clone / ".venv").mkdir()
    assert bootstrap.main() == 1
    assert "move it away" in capsys.readouterr().err
    assert (clone / ".venv").is_dir()


@pytest.mark.parametrize("variables", [{"INFERENCE_PLATFORM_CACHE": "/elsewhere"}, {"XDG_CACHE_HOME": "/xdg"}, {}])
def test_it_uses_the_same_cache_as_every_other_tool(monkeypatch, variables):
    for name in ("INFERENCE_PLATFORM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert bootstrap.cache_dir() == paths.cache_dir()


@pytest.mark.parametrize(("uv_exit", "installers"), [(0, ["pip", "uv", "compileall"]), (2, ["pip", "uv", "pip", "compileall"])])
def test_pip_installs_where_uv_cannot(tmp_path, monkeypatch, uv_exit, installers):
    commands = []

    def run(command, **_options):
        commands.append("uv" if command[0].endswith("/uv") else command[2])
        return subprocess.CompletedProcess(command, uv_exit if commands[-1] == "uv" else 0)

    monkeypatch.setattr(subprocess, "run", run)
    bootstrap.install(tmp_path / "bin" / "python")
    assert commands == installers
