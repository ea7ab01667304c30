"""Clients that wait for their answers."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from loadtests.closed import ClosedPlan, drive
from loadtests.errors import LoadError
from loadtests.samples import Answer, ErrorKind


class Serial:
    """Answers one request after the other, each in `seconds`; remembers how many waited at most."""

    name, protocol = "serial", "none"

    def __init__(self, seconds, answer=None):
        self.seconds, self.answer, self.waiting, self.most, self.turns = seconds, answer or Answer(200, "1"), 0, 0, []

    @asynccontextmanager
    async def session(self):
        turn = asyncio.Lock()

        async def send(number):
            self.turns.append(number)
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            async with turn:
                await asyncio.sleep(self.seconds)
            self.waiting -= 1
            return self.answer

        yield send


def test_as_many_requests_are_in_flight_as_there_are_clients():
    target = Serial(0.005)
    report = drive(ClosedPlan(clients=4, duration_seconds=0.3, warm_up_seconds=0.05), target).raise_if_failed()
    assert target.most == 4
    assert target.turns == list(range(len(target.turns)))
    # One at a time: each waits for the three others.
    assert report.latency_ms(50) >= 3 * 5
    assert report.throughput_rps == pytest.approx(len(report.samples) / 0.3)


def test_only_what_ends_within_the_window_counts():
    target = Serial(0.01)
    report = drive(ClosedPlan(clients=1, duration_seconds=0.1, warm_up_seconds=0.1), target)
    assert 0 < len(report.samples) < len(target.turns)


@pytest.mark.parametrize(
    ("target", "reason"),
    [(Serial(0.01, Answer(500, error=ErrorKind.STATUS, detail="broken")), "status broken"), (Serial(10), "timeout no answer within 0.05 s")],
    ids=["fails", "hangs"],
)
def test_a_run_with_failures_is_no_figure(target, reason):
    with pytest.raises(LoadError, match=reason):
        drive(ClosedPlan(clients=2, duration_seconds=0.1, warm_up_seconds=0, timeout_seconds=0.05), target).raise_if_failed()


def test_a_run_in_which_nothing_ended_is_no_figure():
    with pytest.raises(LoadError, match="no request ended"):
        drive(ClosedPlan(clients=1, duration_seconds=0.01, warm_up_seconds=0), Serial(0.1)).raise_if_failed()


@pytest.mark.parametrize(
    "plan",
    [
        {"clients": 0, "duration_seconds": 1},
        {"clients": 2_000, "duration_seconds": 1},
        {"clients": 1, "duration_seconds": 0},
        {"clients": 1, "duration_seconds": 3_600},
        {"clients": 1, "duration_seconds": 1, "timeout_seconds": 0},
    ],
)
def test_a_plan_out_of_its_bounds_is_refused(plan):
    with pytest.raises(LoadError):
        ClosedPlan(**plan)
