"""What the commands behind `make` share."""

import os
import subprocess
import sys

import pytest

from components.errors import UNREAD, AssetError, ConfigError, PlatformError
from loadtests.errors import LoadError
from tools.cli import Steps, run_main
from tools.errors import ToolError


def raising(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize("kind", [PlatformError, ConfigError, AssetError, ToolError, LoadError])
def test_an_error_a_person_can_act_on_is_a_sentence_and_the_way_out(kind, capsys):
    assert run_main(raising(kind("it is so", hint="do that"))) == 1
    assert capsys.readouterr().err == "error: it is so\n  -> do that\n"


def test_an_interrupt_says_how_to_go_on(capsys):
    assert run_main(raising(KeyboardInterrupt())) == 130
    assert "the same command goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize("size", [1, 100_000], ids=["kept until the end", "written at once"])
def test_a_reader_that_leaves_ends_a_command_without_a_word(size):
    work = f"import sys; from components.errors import run_main; sys.exit(run_main(lambda: print('x' * {size}) or 0))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", work], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (UNREAD, b"")


def test_another_pipe_that_breaks_is_a_fault():
    with pytest.raises(BrokenPipeError):
        run_main(raising(BrokenPipeError()))


def test_a_fault_of_ours_keeps_its_stack_trace():
    with pytest.raises(ZeroDivisionError):
        run_main(raising(ZeroDivisionError()))


@pytest.mark.parametrize("code", [0, 1, 7])
def test_the_exit_code_is_the_works_own(code):
    assert run_main(lambda: code) == code


def test_steps_are_counted_and_give_back_what_was_made(capsys):
    steps = Steps(2)
    assert [steps.run(what, what.upper) for what in ("one", "two")] == ["ONE", "TWO"]
    assert capsys.readouterr().out.splitlines() == ["[1/2] one", "[1/2] one: 0 s", "[2/2] two", "[2/2] two: 0 s"]


def test_a_step_that_fails_is_not_called_done(capsys):
    with pytest.raises(ToolError):
        Steps(1).run("one", raising(ToolError("no", "way")))
    assert capsys.readouterr().out == "[1/1] one\n"
