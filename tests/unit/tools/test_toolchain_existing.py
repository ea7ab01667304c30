"""What is on the machine already is used, if it fits."""

import pytest

from tools.toolchain import assembly, existing
from tools.toolchain.provider import BINARY, install_plugin, plugin_folder


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with an empty home, an empty cache and one folder on PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    return tmp_path


def _program(path, output=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {output}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("version", "used"), [("v3.272.0", True), ("v4.0.0", True), ("v3.271.9", False), ("unknown", False)])
def test_a_pulumi_on_path_is_used_from_the_sdks_release_on(machine, version, used):
    found = _program(machine / "bin" / "pulumi", version)
    assert existing.find_pulumi() == (found if used else None)


def test_our_own_build_on_path_is_not_mistaken_for_the_persons_pulumi(machine, monkeypatch):
    ours = _program(machine / "cache" / "toolchain" / "pulumi-x" / "bin" / "pulumi", "v9.0.0")
    monkeypatch.setenv("PATH", str(ours.parent))
    assert existing.find_pulumi() is None


def test_the_provider_is_found_in_the_persons_plugin_folder(machine):
    binary = _program(machine / "home" / ".pulumi" / "plugins" / plugin_folder() / BINARY)
    assert existing.find_provider() == binary


def test_a_provider_whose_installation_was_interrupted_is_not_used(machine):
    plugins = machine / "home" / ".pulumi" / "plugins"
    _program(plugins / plugin_folder() / BINARY)
    (plugins / f"{plugin_folder()}.partial").touch()
    assert existing.find_provider() is None


def test_after_make_env_the_persons_own_plugin_folder_is_still_the_one_that_is_searched(machine, monkeypatch):
    binary = _program(machine / "home" / ".pulumi" / "plugins" / plugin_folder() / BINARY)
    monkeypatch.setenv("PULUMI_HOME", str(machine / "cache" / "pulumi-home"))
    assert existing.find_provider() == binary


def test_the_engine_finds_the_provider_in_a_real_folder_of_its_plugins(machine):
    binary = _program(machine / "built" / BINARY)
    for _ in range(2):
        install_plugin(machine / "pulumi-home", binary)
    folder = machine / "pulumi-home" / "plugins" / plugin_folder()
    assert folder.is_dir()
    assert not folder.is_symlink()
    assert (folder / BINARY).resolve() == binary


def test_a_machine_with_pulumi_builds_neither_engine_nor_provider_nor_language_host(machine, monkeypatch):
    pulumi = _program(machine / "bin" / "pulumi", "v3.300.0")
    host = _program(machine / "bin" / "pulumi-language-python")
    provider = _program(machine / "home" / ".pulumi" / "plugins" / plugin_folder() / BINARY)
    monkeypatch.setattr(assembly, "ensure_group", lambda group: pytest.fail(f"built {group.name}"))
    toolchain = assembly.ensure(["pulumi", "provider"])
    assert toolchain.binaries == {"pulumi": pulumi, "pulumi-language-python": host, BINARY: provider}
    assert toolchain.bin_dirs() == (machine / "bin",)


def test_our_language_host_stands_beside_our_engine_and_not_on_a_path_of_its_own(machine, monkeypatch):
    engine = _program(machine / "cache" / "toolchain" / "pulumi-x" / "bin" / "pulumi")
    monkeypatch.setattr(assembly, "ensure_group", lambda _group: engine.parent)
    toolchain = assembly.ensure(["pulumi"])
    assert toolchain.path("pulumi-language-python").parent == engine.parent
    assert toolchain.env()["PATH"].startswith(f"{engine.parent}:")
