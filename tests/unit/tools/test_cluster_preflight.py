"""What a machine must offer: one sentence and the way out, before anything is changed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.cluster.preflight import DISK_MIB, MEMORY_MIB, PROGRAMS, Facts, file_system, judge, judge_programs
from tools.cluster.spec import ClusterSpec
from tools.errors import ToolError
from tools.toolchain.debian import CLUSTER_PACKAGES

GOOD = Facts(
    system="Linux",
    processor="x86_64",
    root=True,
    memory_mib=MEMORY_MIB,
    disk_mib=DISK_MIB,
    file_system="ext4",
    overlay=True,
    controllers=frozenset({"cpu", "cpuset", "memory", "pids"}),
    missing_programs=(),
    cni=Path("/usr/lib/cni"),
    port_taken=False,
    socket_path_length=80,
)
HERE = Path("/cache/clusters/local")


def test_a_machine_that_has_just_enough_is_good() -> None:
    judge(ClusterSpec(), GOOD, HERE)
    judge_programs(GOOD)


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"system": "Darwin"}, "needs Linux, this is Darwin", "make up CONTEXT="),
        ({"processor": "aarch64"}, "are for x86_64, this machine is aarch64", "x86_64 machine"),
        ({"root": False}, "needs root", "make up CONTEXT="),
        ({"memory_mib": MEMORY_MIB - 1}, f"needs {MEMORY_MIB} MiB", "make up CONTEXT="),
        ({"disk_mib": DISK_MIB - 1}, f"needs {DISK_MIB} MiB", "INFERENCE_PLATFORM_CACHE"),
        ({"overlay": False}, "no overlay file system", "make up CONTEXT="),
        ({"file_system": "overlay"}, "itself on an overlay file system", "INFERENCE_PLATFORM_CACHE"),
        ({"controllers": frozenset({"cpu", "memory"})}, "no cgroup controller for cpuset, pids", "make up CONTEXT="),
        ({"socket_path_length": 108}, "has 108 characters", "INFERENCE_PLATFORM_CACHE"),
    ],
)
def test_each_lack_is_named_with_a_way_out(change: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ToolError, match=message) as error:
        judge(ClusterSpec(), replace(GOOD, **change), HERE)
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"missing_programs": ("ctr", "containerd", "nft")}, "not installed: ctr, containerd, nft", "packages containerd nftables"),
        ({"cni": None}, "the CNI plugins ptp and host-local", "containernetworking-plugins"),
    ],
)
def test_missing_programs_are_named_with_their_packages(change: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ToolError, match=message) as error:
        judge_programs(replace(GOOD, **change))
    assert hint in error.value.hint


def test_every_program_a_node_needs_comes_with_a_package_that_is_installed_where_it_is_missing() -> None:
    assert set(PROGRAMS.values()) <= CLUSTER_PACKAGES.keys()


def test_a_control_plane_needs_neither_root_nor_what_only_nodes_need() -> None:
    small = replace(
        GOOD, processor="aarch64", root=False, memory_mib=1024, disk_mib=1024, overlay=False, controllers=frozenset(), socket_path_length=200
    )
    judge(ClusterSpec(control_plane_only=True), small, HERE)


def test_a_taken_port_is_named() -> None:
    with pytest.raises(ToolError, match=r"port 6443 on .* is taken") as error:
        judge(ClusterSpec(control_plane_only=True, api_port=6443), replace(GOOD, port_taken=True), HERE)
    assert "free one" in error.value.hint


def test_the_innermost_mount_tells_the_file_system() -> None:
    mounts = "/dev/vda / ext4 rw 0 0\noverlay /home overlay rw 0 0\ntmpfs /home/a\\040b tmpfs rw 0 0\n"
    assert file_system(Path("/srv/x"), mounts) == "ext4"
    assert file_system(Path("/home/x"), mounts) == "overlay"
    assert file_system(Path("/home/a b/c"), mounts) == "tmpfs"
    assert file_system(Path("/homer"), mounts) == "ext4"
