import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serving.batch.__main__ import main
from tests.unit.serving.batch.fake_triton import FakeTriton, fake_triton


@pytest.fixture
def triton() -> Iterator[FakeTriton]:
    with fake_triton() as server:
        yield server


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Sixty files with different contents, some in folders."""
    for number in range(60):
        path = tmp_path / "in" / ("a" if number % 3 else "b") / f"{number:03d}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"content {number}".encode())
    return tmp_path / "in"


@pytest.fixture
def batch(triton: FakeTriton, inputs: Path, tmp_path: Path) -> Callable[..., int]:
    """Runs the command in this process, on the inputs and the output `out`; its exit code."""

    def run(*words: str, output: str | Path = tmp_path / "out", source: str | Path = inputs) -> int:
        return main(["run", os.fspath(source), os.fspath(output), "--address", triton.address, "--model", "echo", *words])

    return run
