"""Back-off and bounds, in no time."""

import asyncio
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.batch.arguments import between, parse, shard
from serving.batch.asking import Asker, Backoff, StoppedError
from serving.batch.errors import OutageError
from serving.batch.inputs import Shard
from serving.batch.model import Answer, RefusedError
from serving.batch.progress import Progress, duration
from serving.batch.storage import Item

ITEM = Item("a", 1, "f")


class Scripted:
    """Refuses as often as it was told, then answers."""

    def __init__(self, *refusals, ready=True):
        self.refusals, self.ready, self.waits = iter(refusals), ready, []

    async def ask(self, contents):
        if refusal := next(self.refusals, None):
            raise RefusedError(refusal, "as told")
        return Answer("1", [{} for _ in contents])

    async def is_ready(self):
        return self.ready

    async def sleep(self, seconds):
        self.waits.append(seconds)


def asker(model, **backoff):
    return Asker(model, Backoff(**backoff), seed=1, sleep=model.sleep)


def ask(asked):
    return asyncio.run(asked.ask([(ITEM, b"x")]))


@given(st.integers(1, 10_000), st.floats(0.001, 10), st.floats(10, 1_000))
def test_waits_double_up_to_the_longest(attempt, first, longest):
    backoff = Backoff(first_seconds=first, longest_seconds=longest)
    wait = backoff.longest_wait(attempt)
    assert first <= wait <= longest
    assert wait == longest or backoff.longest_wait(attempt + 1) == min(longest, 2 * wait)


def test_every_wait_is_drawn_between_nothing_and_its_bound():
    model = Scripted(*["UNAVAILABLE"] * 6)
    records, suspects = ask(asker(model, first_seconds=1.0, longest_seconds=8.0))
    assert (len(records), suspects) == (1, [])
    assert len(model.waits) == 6
    assert all(0 <= wait <= bound for wait, bound in zip(model.waits, (1, 2, 4, 8, 8, 8), strict=True))


def test_a_refusal_that_names_the_request_is_not_repeated():
    model = Scripted("INVALID_ARGUMENT")
    _, suspects = ask(asker(model))
    assert suspects == [(ITEM, b"x")]
    assert model.waits == []


def test_a_server_that_has_answered_nobody_is_at_fault_and_not_the_item():
    model = Scripted()
    model.refusals = repeat("UNAVAILABLE")
    with pytest.raises(OutageError, match="UNAVAILABLE as told"):
        ask(asker(model, outage_seconds=0.05))


def test_waiting_for_a_model_that_is_not_ready_is_bounded_too():
    with pytest.raises(OutageError):
        ask(asker(Scripted("UNAVAILABLE", ready=False), outage_seconds=0.05))


class Timed(Scripted):
    """Its clock runs while it is asked and while the asker waits, and at no other time but what the test adds."""

    def __init__(self, *refusals, seconds):
        super().__init__(*refusals)
        self.seconds, self.now = seconds, 0.0

    def monotonic(self):
        return self.now

    async def ask(self, contents):
        self.now += self.seconds
        return await super().ask(contents)

    async def sleep(self, seconds):
        self.now += seconds


def timed(monkeypatch, *refusals, seconds):
    model = Timed(*refusals, seconds=seconds)
    monkeypatch.setattr("serving.batch.asking.time.monotonic", model.monotonic)
    return model


def test_a_request_that_took_long_before_it_was_refused_is_no_outage(monkeypatch):
    model = timed(monkeypatch, "DEADLINE_EXCEEDED", "UNAVAILABLE", seconds=90.0)
    records, _ = ask(asker(model, outage_seconds=100.0))
    assert len(records) == 1


def test_time_in_which_nobody_asked_is_no_outage(monkeypatch):
    model = timed(monkeypatch, None, "UNAVAILABLE", "INVALID_ARGUMENT", "UNAVAILABLE", seconds=0.1)

    async def run():
        asked = asker(model, outage_seconds=100.0)
        for _ in range(3):
            await asked.ask([(ITEM, b"x")])
            model.now += 1_000.0

    asyncio.run(run())
    assert list(model.refusals) == []


def test_refusals_alone_for_so_long_are_an_outage(monkeypatch):
    model = timed(monkeypatch, seconds=0.1)
    model.refusals = repeat("UNIMPLEMENTED")
    with pytest.raises(OutageError, match="refuses everybody for 10"):
        ask(asker(model, outage_seconds=100.0))
    assert 100.0 < model.now < 140.0


def test_who_is_to_stop_does_not_wait_for_a_busy_server():
    model = Scripted("UNAVAILABLE")

    async def stopped():
        asked = asker(model)
        asked.stopping.set()
        await asked.ask([(ITEM, b"x")])

    with pytest.raises(StoppedError):
        asyncio.run(stopped())


@pytest.mark.parametrize(("text", "expected"), [("0/1", Shard(0, 1)), ("2/8", Shard(2, 8)), ("/4", Shard(3, 4))])
def test_a_shard_is_named_or_taken_from_the_indexed_job(text, expected):
    assert shard(text, {"JOB_COMPLETION_INDEX": "3"}) == expected


@pytest.mark.parametrize(
    "words",
    [
        ["--shard", "4/4"],
        ["--shard", "x"],
        ["--shard", "/2"],
        ["--in-flight", "0"],
        ["--part-items", "-1"],
        ["--priority", "1.5"],
        ["--changed", "x"],
        ["--timeout-seconds", "600"],
        ["--outage-seconds", "60"],
        ["--version", "\u00fc"],
        ["--version", "1\n2"],
        ["--version", "0"],
        ["--model", "\udcff"],
        ["--authority", "a\nb"],
        ["--outputs", "a b"],
        ["--address", ""],
    ],
    ids=ascii,
)
def test_an_argument_out_of_its_bounds_is_refused(words, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(["run", "in", "out", "--address", "h:1", "--model", "m", *words], "")
    assert ended.value.code == 2
    assert words[0] in capsys.readouterr().err


@given(st.text())
def test_a_number_is_within_its_bounds_or_refused(text):
    try:
        assert 1 <= between(1, 9)(text) <= 9
    except Exception as error:  # noqa: BLE001  (the kind is what is tested)
        assert type(error).__name__ == "ArgumentTypeError"  # noqa: PT017


def test_progress_says_done_total_rate_failures_and_the_time_left():
    now = [0.0]
    progress = Progress(total=100, before=20, clock=lambda: now[0])
    assert progress.line() == "20/100 (20%), 0.0 items/s, 0 failed, end unknown"
    now[0] = 10.0
    progress.add(answered=18, failed=2)
    assert progress.line() == "40/100 (40%), 2.0 items/s, 2 failed, 0:30 left"
    progress.add(answered=60)
    assert progress.line().endswith("2 failed")
    assert progress.summary()["before"] == 20


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (61, "1:01"), (3_723.4, "1:02:03")])
def test_durations_read_as_clocks(seconds, text):
    assert duration(seconds) == text
