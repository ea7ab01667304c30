"""What the toolchain builds, and when it builds it again."""

import shutil

import pytest

from tools.errors import ToolError
from tools.paths import REPO
from tools.toolchain import catalog, gomod
from tools.toolchain.existing import MINIMUM_PULUMI
from tools.toolchain.provider import provider_version


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A copy of tools/gomod that a test may edit."""
    copy = tmp_path / "gomod"
    shutil.copytree(catalog.GOMOD, copy)
    monkeypatch.setattr(catalog, "GOMOD", copy)
    return copy


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_an_edit_of_the_pinned_modules_gives_every_group_of_that_module_a_new_place(modules, name):
    before = {group.name: group.key for group in catalog.GROUPS}
    with (modules / "platform" / name).open("a") as file:
        file.write("// edited\n")
    changed = {group.name for group in catalog.GROUPS if group.key != before[group.name]}
    assert changed == {group.name for group in catalog.GROUPS if group.module == "platform"}


def test_an_edit_of_our_own_sources_rebuilds_only_what_is_made_from_them(modules):
    before = {group.name: group.key for group in catalog.GROUPS}
    with (modules / "provider" / "main.go").open("a") as file:
        file.write("// edited\n")
    assert {group.name for group in catalog.GROUPS if group.key != before[group.name]} == {"provider"}


def test_the_kubernetes_programs_carry_the_version_that_go_mod_pins():
    version = gomod.module_version(catalog.GOMOD / "platform" / "go.mod", "k8s.io/kubernetes")
    assert f"-X k8s.io/component-base/version.gitVersion={version}" in catalog.BY_NAME["cluster"].ldflags
    assert f"gitMinor={version.split('.')[1]}" in catalog.BY_NAME["cluster"].ldflags


def test_the_provider_carries_the_version_that_the_sdk_asks_the_engine_for():
    assert catalog.BY_NAME["provider"].ldflags.endswith(f"version.Version={provider_version()}")


def test_every_program_belongs_to_one_group_and_every_package_is_in_go_mod():
    names = [name for group in catalog.GROUPS for name in group.tools]
    assert len(names) == len(set(names))
    for group in catalog.GROUPS:
        text = (catalog.GOMOD / group.module / "go.mod").read_text()
        for package in group.tools.values():
            assert package in text or package.startswith(gomod.module_path(catalog.GOMOD / group.module / "go.mod")), package


def test_what_make_up_does_not_need_is_not_built_by_default():
    assert {group.name for group in catalog.GROUPS if not group.default} == {"keda", "metrics-server"}


def test_the_oldest_pulumi_that_is_used_is_the_release_of_the_locked_sdk():
    locked = next(line for line in (REPO / "requirements.txt").read_text().splitlines() if line.startswith("pulumi=="))
    assert locked.split("==")[1].split()[0] == MINIMUM_PULUMI


@pytest.mark.parametrize(("text", "numbers"), [("go1.26.6", (1, 26, 6)), ("v3.274.1\n", (3, 274, 1)), ("v1.2.0-rc.1", (1, 2, 0)), ("unknown", ())])
def test_versions_compare_by_their_numbers(text, numbers):
    assert gomod.version_tuple(text) == numbers


def test_a_module_that_go_mod_does_not_require_is_named(tmp_path):
    (tmp_path / "go.mod").write_text("module example.test/x\n\ngo 1.26.0\n")
    with pytest.raises(ToolError, match=r"does not require k8s\.io/kubernetes"):
        gomod.module_version(tmp_path / "go.mod", "k8s.io/kubernetes")
