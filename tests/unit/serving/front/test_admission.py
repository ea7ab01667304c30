"""Places, turns and memory."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from serving.front.admission import LONGEST_RETRY_AFTER_SECONDS, ByteBudget, Gate
from serving.front.faults import RequestFault


def test_retry_after_is_what_those_who_are_in_still_need():
    gate = Gate(4, 100)
    assert gate.retry_after() == 1
    gate.mean_seconds, gate.seats = 2.0, 20
    assert gate.retry_after() == 10
    gate.seats = 21
    assert gate.retry_after() == 11
    gate.seats = 100_000
    assert gate.retry_after() == LONGEST_RETRY_AFTER_SECONDS


def test_the_mean_time_follows_what_is_measured_and_not_what_fails():
    now = [0.0]
    gate = Gate(1, 0, lambda: now[0])

    async def run():
        async with gate.turn("realtime"):
            now[0] += 4
        assert gate.mean_seconds == 4
        for _ in range(100):
            async with gate.turn("realtime"):
                now[0] += 1
        assert gate.mean_seconds == pytest.approx(1, abs=0.01)
        with pytest.raises(RuntimeError):
            async with gate.turn("realtime"):
                raise RuntimeError
        assert gate.mean_seconds == pytest.approx(1, abs=0.01)

    asyncio.run(run())


@effort(max_examples=150, deadline=None)
@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from(["realtime", "batch"]), st.integers(0, 6), st.booleans()), max_size=25))
def test_whoever_waits_gets_a_turn_or_leaves_and_no_place_is_lost(concurrency, visitors):
    """Each visitor stays for some rounds of the loop; some are cancelled at a moment of their own."""
    gate = Gate(concurrency, 0)
    inside: list[None] = []

    async def visit(priority, rounds):
        async with gate.turn(priority):
            inside.append(None)
            try:
                assert len(inside) <= concurrency
                for _ in range(rounds):
                    await asyncio.sleep(0)
            finally:
                inside.pop()

    async def run():
        tasks = []
        for priority, rounds, leaves in visitors:
            tasks.append(asyncio.create_task(visit(priority, rounds)))
            for _ in range(rounds if leaves else 0):
                await asyncio.sleep(0)
            if leaves:
                tasks[-1].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [each for each in done if each is not None and not isinstance(each, asyncio.CancelledError)] == []
        assert gate.in_flight == 0
        async with asyncio.timeout(1):
            await visit("batch", 0)

    asyncio.run(run())


def test_a_full_house_refuses_and_a_place_that_is_left_can_be_taken():
    gate = Gate(1, 1)
    with gate.seat():
        with gate.seat(), pytest.raises(RequestFault, match="1 requests are at the model and 1 wait"), gate.seat():
            pass
        with gate.seat():
            assert gate.seats == 2
    assert gate.seats == 0


def test_who_needs_more_memory_than_is_free_waits_for_it():
    async def run():
        budget = ByteBudget(10)
        await budget.take(8)
        waiting = asyncio.create_task(budget.take(5))
        await asyncio.sleep(0)
        budget.give_back(2)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.give_back(4)
        await waiting
        assert budget.held == 7
        assert not budget.try_take(4)
        assert budget.try_take(3)

    asyncio.run(run())
