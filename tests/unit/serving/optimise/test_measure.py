"""Times: taken in turns, kept round by round, and what is made of them."""

from collections.abc import Sequence
from functools import partial

import pytest

from serving.optimise.measure import Plan, latency_of, run_round, take

PLAN = Plan(calls={1: 2, 4: 1}, rounds=3, slow_calls=1)


class Recorder:
    """Answerers that write down who was called with how much."""

    def __init__(self, *names: str) -> None:
        self.calls: list[tuple[str, int]] = []
        self.answerers = {name: partial(self._answer, name) for name in names}

    def _answer(self, name: str, contents: Sequence[bytes]) -> list[str]:
        self.calls.append((name, len(contents)))
        return [""] * len(contents)


def test_every_round_has_all_variants_and_each_begins_once():
    recorder = Recorder("a", "b", "c")
    for number in range(3):
        run_round(recorder.answerers, [b""], {"a": 1, "b": 1, "c": 1}, number)
    assert [recorder.calls[index][0] for index in (0, 6, 12)] == ["a", "b", "c"]
    assert {tuple(sorted({name for name, _ in recorder.calls[start : start + 6]})) for start in (0, 6, 12)} == {("a", "b", "c")}


def test_the_first_call_of_a_round_does_not_count():
    recorder = Recorder("a")
    assert len(run_round(recorder.answerers, [b""], {"a": 5}, 0)["a"]) == 5
    assert len(recorder.calls) == 6


def test_a_call_has_as_many_examples_as_the_batch_says_even_of_few(tmp_path):
    recorder = Recorder("a")
    take(tmp_path, recorder.answerers, [b"1", b"2", b"3"], 4, PLAN)
    assert {size for _, size in recorder.calls} == {4}


def test_rounds_that_were_taken_are_not_taken_again(tmp_path):
    first, second = Recorder("a", "b"), Recorder("a", "b")
    taken = take(tmp_path, first.answerers, [b""], 1, PLAN)
    next(iter(tmp_path.glob("*-1.json"))).unlink()
    again = take(tmp_path, second.answerers, [b""], 1, PLAN)
    assert len(second.calls) == len(first.calls) / 3
    assert (again[0], again[2]) == (taken[0], taken[2])


def test_a_slow_variant_has_its_own_number_of_calls(tmp_path):
    [first, *_] = take(tmp_path, Recorder("a", "b").answerers, [b""], 1, PLAN, {"b"})
    assert {name: len(times) for name, times in first.items()} == {"a": 2, "b": 1}


def test_a_speed_up_compares_within_a_round_so_drift_does_not_count():
    rounds = [{"ref": [(0.9, 0.01)] * 3, "new": [(0.005, 0.005)] * 3}, {"ref": [(0.9, 0.04)] * 3, "new": [(0.010, 0.01)] * 3}]
    latency = latency_of("new", "ref", 4, rounds)
    assert (latency.speedup, latency.speedup_low, latency.speedup_high) == pytest.approx((3, 2, 4))
    assert (latency.p50_ms, latency.p99_ms, latency.cpu_p50_ms, latency.calls) == pytest.approx((5, 10, 7.5, 6))
    assert latency.examples_per_second == pytest.approx(4 / 0.0075)
