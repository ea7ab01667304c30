"""Control groups of either version, on directories that look like them."""

from pathlib import Path

from tools.cluster.cgroups import available, hierarchies, is_v2, kubelet_root


def version_1(root: Path) -> Path:
    for name in ("cpu,cpuacct", "memory"):
        (root / name).mkdir(parents=True)
        (root / name / "cgroup.procs").touch()
    for link in ("cpu", "cpuacct"):
        (root / link).symlink_to("cpu,cpuacct")
    (root / "not-a-controller").mkdir()
    return root


def version_2(root: Path) -> Path:
    (root / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    (root / "system.slice").mkdir()
    return root


def test_joint_controllers_of_version_1_are_each_available_and_one_hierarchy(tmp_path: Path) -> None:
    root = version_1(tmp_path)
    assert not is_v2(root)
    assert available(root) == {"cpu", "cpuacct", "cpu,cpuacct", "memory"}
    assert hierarchies(root) == [root / "cpu,cpuacct", root / "memory"]


def test_version_2_is_one_hierarchy_with_the_controllers_it_lists(tmp_path: Path) -> None:
    root = version_2(tmp_path)
    assert is_v2(root)
    assert available(root) == {"cpuset", "cpu", "memory", "pids"}
    assert hierarchies(root) == [root]


def test_a_host_without_control_groups_offers_none(tmp_path: Path) -> None:
    assert available(tmp_path / "absent") == set()
    assert hierarchies(tmp_path / "absent") == []


def test_each_node_has_a_group_of_its_own() -> None:
    assert kubelet_root("local", 1) == "/inference-platform/local/node-1"
