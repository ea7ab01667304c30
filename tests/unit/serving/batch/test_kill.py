"""The client dies at any moment, and every item is answered exactly once in the output."""

import json
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from serving.batch.__main__ import Exit, main
from tests.unit.serving.batch.fake_triton import MAX_BATCH, poison
from tools.paths import REPO

KILLS = 10
SEED = 20_240_811


def ids(output):
    return Counter(json.loads(line)["id"] for part in output.rglob("part-*.jsonl") for line in part.read_text().splitlines())


def test_ten_kills_at_random_moments_lose_nothing_and_repeat_nothing(triton, tmp_path):
    """Each life is killed a random time after a random one of its requests; the parts are small, so that kills also meet their being written."""
    draw = random.Random(SEED)  # noqa: S311  (a reproducible test)
    inputs, output = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    for number in range(600):
        (inputs / f"{number:04d}").write_bytes(f"content {number}".encode())
    triton.faults = poison(b"content 77")
    triton.delay_seconds = lambda: draw.uniform(0, 0.004)
    words = ["run", str(inputs), str(output), "--address", triton.address, "--model", "echo", "--part-items", "9", "--in-flight", "3"]
    alive: dict[str, Any] = {}

    def kill(number):
        if alive and number >= alive["at"]:
            triton.loop.call_later(draw.uniform(0, 0.02), alive.pop("process").kill)
            alive.clear()

    triton.on_request = kill
    kept = [0]
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-m", "serving.batch", *words], cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        alive.update(process=process, at=triton.requests + draw.randrange(1, 8))
        assert process.wait(30) == -9
        kept.append(sum(ids(output).values()))
    triton.on_request = lambda _: None
    assert kept == sorted(kept)
    assert 0 < kept[-1] < 600
    assert main(words) == Exit.ITEMS_FAILED
    assert ids(output) == Counter(path.name for path in inputs.iterdir())
    assert main(["check", str(inputs), str(output)]) == Exit.DONE
    # What was in flight or not yet stored at a kill is asked again, and no more than that.
    assert sum(triton.asked.values()) - 599 <= KILLS * (3 * MAX_BATCH + 9)


class Crash(BaseException):
    """The process ends here: nothing catches it."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_before_or_after_any_write_loses_nothing_and_repeats_nothing(batch, inputs, tmp_path, monkeypatch, when):
    from serving.batch.directory import DirectoryStorage  # noqa: PLC0415  (patched here)

    count, crash_at = 0, 0
    create = DirectoryStorage.create

    def crashing(self, name, content):
        nonlocal count
        count += 1
        if crash_at and (count > crash_at or (count == crash_at and when == "before")):
            raise Crash
        done = create(self, name, content)
        if count == crash_at:
            raise Crash
        return done

    monkeypatch.setattr(DirectoryStorage, "create", crashing)
    assert batch("--part-items", "8", "--in-flight", "1", output=tmp_path / "whole") == Exit.DONE
    writes = count
    assert writes == 9  # the settings, and eight parts
    for moment in range(1, writes + 1):
        output = tmp_path / f"{when}-{moment}"
        count, crash_at = 0, moment
        with pytest.raises(Crash):
            batch("--part-items", "8", "--in-flight", "1", output=output)
        crash_at = 0
        assert batch("--part-items", "8", output=output) == Exit.DONE
        assert ids(output) == Counter(path.relative_to(inputs).as_posix() for path in inputs.rglob("*.txt"))
