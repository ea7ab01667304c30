"""Building with a stand-in for the compiler: what is kept, what is said, what happens twice."""

import io
import threading

import pytest

from tests.unit.tools.fake_go import builds, write_go
from tools.errors import ToolError
from tools.toolchain import build, catalog
from tools.toolchain.progress import Progress


@pytest.fixture
def group(tmp_path, monkeypatch):
    """One group with one program, an empty cache, and a folder for `go` at the front of PATH."""
    module = tmp_path / "gomod" / "demo"
    module.mkdir(parents=True)
    (module / "go.mod").write_text("module example.test/demo\n\ngo 1.26.0\n")
    (module / "go.sum").write_text("")
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(catalog, "GOMOD", module.parent)
    monkeypatch.setattr("tools.toolchain.go.GOMOD", module.parent)
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return catalog.Group("demo", "demo", {"demo-tool": "example.test/tool"})


def test_a_program_is_built_once_and_found_from_then_on(group, tmp_path):
    calls = write_go(tmp_path / "bin")
    folder = build.ensure_group(group)
    assert (folder / "demo-tool").read_text() == "binary\n"
    assert build.ensure_group(group) == folder
    assert builds(calls) == 1


def test_a_compiler_error_is_shown_with_the_way_on_and_leaves_nothing_that_looks_built(group, tmp_path):
    write_go(tmp_path / "bin", build='echo "# example.test/dep" >&2; echo "dep.go:7:2: undefined: thing" >&2; exit 1')
    with pytest.raises(ToolError, match=r"dep\.go:7:2: undefined: thing") as failure:
        build.ensure_group(group)
    assert "example.test/tool" in failure.value.message
    assert "GOPROXY" in failure.value.hint
    assert not build.bin_directory(group).parent.exists()


def test_after_a_failed_download_the_next_run_builds(group, tmp_path):
    write_go(tmp_path / "bin", build='echo "go: example.test/dep@v1.0.0: connection refused" >&2; exit 1')
    with pytest.raises(ToolError, match=r"example\.test/dep@v1\.0\.0: connection refused"):
        build.ensure_group(group)
    write_go(tmp_path / "bin")
    assert (build.ensure_group(group) / "demo-tool").exists()


def test_an_interrupt_ends_the_compiler_and_the_next_run_starts_over(group, tmp_path, monkeypatch):
    ended = tmp_path / "ended"
    write_go(tmp_path / "bin", build=f'trap "touch {ended}; exit 1" TERM; echo example.test/interrupted >&2; while :; do sleep 0.05; done')

    def interrupt(self, line):
        if line == "example.test/interrupted":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build.Counter, "__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build.ensure_group(group)
    assert ended.exists()
    assert not build.bin_directory(group).parent.exists()
    write_go(tmp_path / "bin")
    assert (build.ensure_group(group) / "demo-tool").exists()


def test_two_runs_at_once_build_once(group, tmp_path, capfd):
    calls = write_go(tmp_path / "bin", build="sleep 0.3")
    threads = [threading.Thread(target=build.ensure_group, args=(group,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builds(calls) == 1
    assert "another process is at it" in capfd.readouterr().err


def test_progress_says_what_how_many_of_how_many_and_for_how_long(monkeypatch):
    monkeypatch.setattr("tools.toolchain.progress.LOG_EVERY_SECONDS", 0.0)
    stream = io.StringIO()
    with Progress("building demo", stream=stream) as progress:
        counter = build.Counter(progress, 2)
        counter("go: downloading example.test/dep v1.0.0")
        counter("example.test/dep")
    assert stream.getvalue().splitlines() == [
        "building demo: 0s",
        "building demo: 1 modules downloaded, now example.test/dep v1.0.0, 0s",
        "building demo: 1 of 2 packages, now example.test/dep, 0s",
        "building demo: done, 0s",
    ]


def test_a_log_gets_a_line_only_every_so_often():
    stream = io.StringIO()
    with Progress("building demo", stream=stream) as progress:
        for package in range(1000):
            progress.update(f"{package} of 1000 packages")
    assert len(stream.getvalue().splitlines()) == 2


@pytest.mark.parametrize(("package", "name"), [("go.etcd.io/etcd/server/v3", "server"), ("github.com/coredns/coredns", "coredns")])
def test_programs_are_named_as_the_compiler_names_them(package, name):
    assert build.default_name(package) == name
