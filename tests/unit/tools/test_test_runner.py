"""The test runner counts what ran, and passes nothing that did not."""

import subprocess
import sys

import pytest

from tools import test as runner
from tools.paths import REPO
from tools.test import Tally

PASSED = '<testcase classname="tests.unit.a.test_a" name="one"/>'
FAILED = '<testcase classname="tests.unit.a.test_a" name="two"><failure message="no"/></testcase>'
BROKEN = '<testcase classname="tests.golden.test_b" name="three"><error message="no"/></testcase>'
SKIPPED = '<testcase classname="tests.golden.test_b" name="four"><skipped message="no"/></testcase>'


@pytest.fixture
def pytest_writes(monkeypatch):
    """Lets the runner's pytest write these test cases and end with this code."""

    def use(*cases, code=0):
        def run(command, **_):
            [flag] = [word for word in command if word.startswith("--junitxml=")]
            with open(flag.removeprefix("--junitxml="), "w", encoding="utf-8") as report:  # noqa: PTH123
                report.write(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
            return subprocess.CompletedProcess(command, code)

        monkeypatch.setattr("tools.test.subprocess.run", run)

    return use


def closed(*cases, code=0, use):
    use(*cases, code=code)
    tally = Tally()
    tally.pytest("fast tests", ("unit", "golden"))
    return tally.close()


def test_what_passed_is_counted_by_tier(pytest_writes, capsys):
    assert closed(PASSED, PASSED, BROKEN.replace('<error message="no"/>', ""), use=pytest_writes) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines if " passed " in line and "failed" in line][:2] == [["unit", "2"], ["golden", "1"]]
    assert lines[-1] == "3 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize(("case", "code", "last"), [(FAILED, 1, "1 failed"), (BROKEN, 1, "1 failed"), (SKIPPED, 0, "1 skipped")])
def test_a_test_that_failed_or_was_skipped_fails_the_run(pytest_writes, capsys, case, code, last):
    assert closed(PASSED, case, code=code, use=pytest_writes) == 1
    assert last in capsys.readouterr().out.splitlines()[-1]


def test_a_run_without_any_test_fails(pytest_writes, capsys):
    """5 is how pytest says that it collected nothing."""
    assert closed(code=5, use=pytest_writes) == 1
    assert "failed: fast tests" in capsys.readouterr().out


def test_a_check_that_fails_is_named_and_fails_the_run(capsys):
    tally = Tally()
    tally.command("good", [sys.executable, "-c", ""])
    tally.command("bad", [sys.executable, "-c", "raise SystemExit(3)"])
    assert tally.close() == 1
    assert "failed: bad\n" in capsys.readouterr().out


@pytest.mark.parametrize(("code", "closes"), [(0, 0), (3, 1)])
def test_a_check_beside_the_others_is_waited_for_said_in_one_piece_and_counted(capfd, code, closes):
    tally = Tally()
    with tally.beside("types", [sys.executable, "-c", f"import sys; print('a fault'); sys.exit({code})"]):
        tally.command("others", [sys.executable, "-c", "print('others')"])
    assert tally.close() == closes
    said = capfd.readouterr().out
    assert said.index("others") < said.index("== types\na fault\n== types:")
    assert ("failed: types\n" in said) is bool(closes)


def test_a_check_beside_what_breaks_off_does_not_outlive_it():
    tally = Tally()
    with pytest.raises(KeyboardInterrupt), tally.beside("types", [sys.executable, "-c", "import time; time.sleep(600)"]):
        raise KeyboardInterrupt


def test_an_unknown_stage_is_refused_with_those_there_are(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["test", "everything"])
    assert runner.main() == 2
    assert "one of check, preview, serving, e2e, bench, bench-serving, bench-platform, all" in capsys.readouterr().err


def test_every_tier_is_a_folder_and_every_folder_a_tier():
    folders = {path.name for path in (REPO / "tests").iterdir() if (path / "__init__.py").exists()}
    assert folders == {*runner.FAST_TIERS, "preview", "serving", "e2e"}
