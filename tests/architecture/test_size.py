"""Files and functions stay small enough to be read in one go."""

import pytest

from tests.architecture.sources import functions, python_files, text, written

FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 40
PROGRAM_LINES_MAX = 30


def test_no_file_is_longer_than_300_lines() -> None:
    lengths = {str(path): len(text(path).splitlines()) for path in written()}
    assert {path: lines for path, lines in lengths.items() if lines > FILE_LINES_MAX} == {}


def test_no_function_is_longer_than_40_lines() -> None:
    lengths = {f"{path}:{function.name}": (function.end_lineno or 0) - function.lineno + 1 for path in python_files() for function in functions(path)}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES_MAX} == {}


@pytest.mark.parametrize("program", ["__main__.py", "stacks/policies/__main__.py"])
def test_programs_hold_no_logic(program: str) -> None:
    [path] = [path for path in python_files() if str(path) == program]
    assert len(text(path).splitlines()) <= PROGRAM_LINES_MAX
    assert list(functions(path)) == []
