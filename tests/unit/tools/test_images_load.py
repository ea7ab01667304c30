"""Commands that bring images elsewhere, and that fetch what they are made of."""

import zipfile
from pathlib import Path

import pytest

from tools.errors import ToolError
from tools.images import buildah, debian, load
from tools.images.__main__ import parser
from tools.images.load import context_commands, registry_command, registry_ref, run
from tools.images.recipes import ImageArchive
from tools.images.wheels import download_command, find_wheel, unpack

IMAGE = ImageArchive("localhost/inference-platform/triton:abc", Path("/cache/triton-abc.tar"))


def test_kind_takes_the_archive_under_the_clusters_name():
    assert context_commands("kind-dev", [IMAGE]) == [["kind", "load", "image-archive", "/cache/triton-abc.tar", "--name", "dev"]]


def test_k3d_takes_the_archive_under_the_clusters_name():
    assert context_commands("k3d-dev", [IMAGE]) == [["k3d", "image", "import", "/cache/triton-abc.tar", "--cluster", "dev"]]


def test_another_cluster_is_told_to_use_a_registry():
    with pytest.raises(ToolError, match="arn:aws:eks") as error:
        context_commands("arn:aws:eks:eu-west-1:1:cluster/x", [IMAGE])
    assert "REGISTRY=" in error.value.hint


@pytest.mark.parametrize("registry", ["registry.example:5000", "registry.example:5000/"])
def test_a_registry_gets_the_image_under_its_content_key(registry):
    assert registry_ref(registry, IMAGE) == "registry.example:5000/inference-platform/triton:abc"
    assert registry_command(registry, IMAGE)[-2:] == [
        "docker-archive:/cache/triton-abc.tar",
        "docker://registry.example:5000/inference-platform/triton:abc",
    ]


def test_a_program_that_is_not_installed_is_named():
    with pytest.raises(ToolError, match="no-such-program is not installed"):
        run(["no-such-program"])


def test_a_failed_command_is_told_whole():
    with pytest.raises(ToolError, match="`false` ended with 1"):
        run(["false"])


def test_only_one_target_can_be_named(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["load", "--kind", "a", "--k3d", "b"])
    assert "not allowed with" in capsys.readouterr().err


def test_an_unknown_image_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["build", "tritn"])
    error = capsys.readouterr().err
    assert "tritn" in error
    assert "proxyv2" in error


def test_wheels_are_downloaded_by_hash_for_the_images_python_and_never_built():
    command = download_command(Path("r.txt"), Path("out"), "3.11")
    assert {"--require-hashes", "--no-deps"} <= set(command)
    assert command[command.index("--only-binary") + 1] == ":all:"
    assert command[command.index("--python-version") + 1] == "3.11"


def test_a_wheel_is_found_by_distribution_and_version(tmp_path):
    for name in ("nvidia_pytriton-0.7.0-py3-none-any.whl", "pip-26.3-py3-none-any.whl"):
        (tmp_path / name).touch()
    assert find_wheel(tmp_path, "nvidia-pytriton").name.startswith("nvidia_pytriton-0.7.0")
    with pytest.raises(ToolError, match=r"pip-1\.0-"):
        find_wheel(tmp_path, "pip", "1.0")


def test_only_the_wanted_members_are_unpacked_and_can_be_executed(tmp_path):
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as archive:
        archive.writestr("server/bin/run", "x")
        archive.writestr("other/file", "y")
    unpack(tmp_path / "w.whl", ("server/",), tmp_path / "out")
    assert [str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()] == ["server/bin/run"]
    assert (tmp_path / "out/server/bin/run").stat().st_mode & 0o111 == 0o111


def test_debootstrap_uses_a_mirror_only_where_the_machine_has_one():
    assert debian.debootstrap_command(Path("/r"), None)[-2:] == [debian.SUITE, "/r"]
    assert debian.debootstrap_command(Path("/r"), "http://mirror.example")[-1] == "http://mirror.example"


def test_debootstrap_and_buildah_leave_no_mount_and_do_not_outlive_their_caller():
    for command in (debian.debootstrap_command(Path("/r"), None), buildah.Buildah(Path("/store")).command("images")):
        assert command[:5] == ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount"]


def test_missing_programs_are_named_before_anything_is_built(monkeypatch):
    monkeypatch.setattr("tools.images.buildah.shutil.which", lambda program: None if program == "debootstrap" else "/usr/bin/x")
    with pytest.raises(ToolError, match="missing: debootstrap") as error:
        buildah.check_programs()
    assert error.value.hint == "apt-get install debootstrap"


def test_a_user_who_is_not_root_is_told_so(monkeypatch):
    monkeypatch.setattr("tools.images.buildah.shutil.which", lambda program: "/usr/bin/x")
    monkeypatch.setattr("tools.images.buildah.os.geteuid", lambda: 1000)
    with pytest.raises(ToolError, match="as root"):
        buildah.check_programs()


def test_a_registry_serves_a_cluster_that_takes_no_archives(monkeypatch):
    commands: list[list[str]] = []
    monkeypatch.setattr(load, "run", commands.append)
    refs = load.bring_images("arn:aws:eks:eu-west-1:1:cluster/x", {"triton": IMAGE}, "registry.example")
    assert refs == {"triton": "registry.example/inference-platform/triton:abc"}
    assert commands == [registry_command("registry.example", IMAGE)]


def test_whether_there_is_a_way_is_known_before_anything_is_built():
    load.check_way("kind-dev", None)
    load.check_way("other", "registry.example")
    with pytest.raises(ToolError, match="neither kind's nor k3d's"):
        load.check_way("other", None)
