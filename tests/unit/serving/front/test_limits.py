"""Limits of one request: size, places, memory, time, and who goes first."""

import asyncio

import pytest

from tests.unit.serving.front.house import Exchange, exchange, visit

MIB = 1024 * 1024


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_above_the_limit_is_refused_while_it_arrives(announced):
    async def test(house):
        going = Exchange(house.app, "/predict", {"content-length": str(5 * MIB)} if announced else {}).start()
        if not announced:
            for _ in range(40):
                going.send(b"x" * (MIB // 8))
        await going.end()
        assert going.status == 413
        # Of 40 chunks the limit of 1 MiB takes in eight and one too many.
        assert going.unread == (0 if announced else 31)
        assert house.front.memory.held == 0
        assert house.model.calls == []

    visit(test, maxRequestMib=1)


def test_a_length_that_lies_is_counted_not_believed():
    async def test(house):
        answer = await exchange(house.app, "/predict", [b"x" * MIB, b"x"], headers={"content-length": "10"})
        assert answer.status == 413

    visit(test, maxRequestMib=1)


def test_a_form_is_limited_as_well():
    async def test(house):
        answer = await house.client.post("/predict", files={"file": b"x" * MIB})
        assert answer.status_code == 413
        assert (await house.client.post("/predict", files={"file": b"x" * (MIB - 1000)})).status_code == 200

    visit(test, maxRequestMib=1)


def test_a_compressed_body_is_refused():
    async def test(house):
        assert (await house.client.post("/predict", content=b"x", headers={"content-encoding": "gzip"})).status_code == 415

    visit(test)


def test_429_comes_exactly_when_all_places_are_taken_and_says_when_to_come_back():
    async def test(house):
        # A time at the model for Retry-After to go by.
        house.front.gate.mean_seconds = 3.0
        house.model.hold.clear()
        taken = [Exchange(house.app, "/predict").start() for _ in range(2 + 3)]
        for one in taken:
            one.send(b"x", more=False)
        # Together: on their way in, all of them wait for a moment.
        await house.until(lambda: (house.model.at_the_model, house.front.gate.waiting) == (2, 3))
        refused = await house.client.post("/predict", content=b"x")
        # Five requests of three seconds, two at a time.
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "8")
        assert refused.json()["error"]["code"] == "queue_full"
        house.model.hold.set()
        for one in taken:
            assert (await one.end()).status == 200
        assert (await house.client.post("/predict", content=b"x")).status_code == 200
        assert house.model.most_at_once == 2
        assert house.sample("front_rejected_total", reason="queue_full") == 1

    visit(test, concurrency=2, maxWaiting=3)


def test_a_body_that_is_still_on_its_way_takes_a_place_and_none_at_the_model():
    async def test(house):
        slow = Exchange(house.app, "/predict").start()
        slow.send(b"x")
        await house.until(lambda: house.front.gate.waiting == 1)
        assert (await house.client.post("/predict", content=b"x")).status_code == 200
        slow.send(b"", more=False)
        assert (await slow.end()).status == 200

    visit(test, concurrency=1, maxWaiting=1)


def test_bodies_that_would_fill_the_memory_are_refused_and_room_comes_back():
    async def test(house):
        house.model.hold.clear()
        first = [Exchange(house.app, "/predict").start() for _ in range(3)]
        for each in first:
            each.send(b"x" * MIB, more=False)
        await house.until(lambda: house.model.at_the_model == 3)
        refused = await house.client.post("/predict", content=b"x" * (MIB + 1))
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "memory_full")
        assert "retry-after" in refused.headers
        house.model.hold.set()
        assert [(await each.end()).status for each in first] == [200] * 3
        assert (await house.client.post("/predict", content=b"x" * (MIB + 1))).status_code == 200
        assert house.front.memory.held == 0

    visit(test, memory=4, maxRequestMib=2)


def test_the_deadline_ends_a_request_wherever_it_is_and_frees_its_place():
    async def test(house):
        house.model.hold.clear()
        at_the_model = await house.client.post("/predict?timeout_ms=30", content=b"x")
        assert at_the_model.status_code == 504
        assert "at the model" in at_the_model.json()["error"]["message"]
        assert house.model.cancelled == 1
        blocking = Exchange(house.app, "/predict").start()
        blocking.send(b"x", more=False)
        await house.until(lambda: house.model.at_the_model == 1)
        waiting = await house.client.post("/predict?timeout_ms=30", content=b"x")
        assert (waiting.status_code, "waiting for a turn" in waiting.text) == (504, True)
        slow = Exchange(house.app, "/predict", query="timeout_ms=30").start()
        slow.send(b"x")
        assert (await slow.end()).status == 408
        house.model.hold.set()
        assert (await blocking.end()).status == 200
        assert (house.front.gate.seats, house.front.gate.in_flight, house.front.memory.held) == (0, 0, 0)

    visit(test, concurrency=1, maxWaiting=4)


def test_a_caller_may_ask_for_less_time_and_not_for_more():
    async def test(house):
        await house.client.post("/predict?timeout_ms=3600000", content=b"x")
        assert house.model.calls[0][1].seconds <= 2

    visit(test, timeoutSeconds=2.0)


def test_a_caller_who_hangs_up_is_forgotten_at_the_model_too():
    async def test(house):
        house.model.hold.clear()
        going = Exchange(house.app, "/predict").start()
        going.send(b"x", more=False)
        await house.until(lambda: house.model.at_the_model == 1)
        going.hang_up()
        await going.end()
        assert (going.status, house.model.cancelled) == (0, 1)
        assert (house.front.gate.seats, house.front.memory.held) == (0, 0)
        half = Exchange(house.app, "/predict").start()
        half.send(b"x")
        half.hang_up()
        assert (await half.end()).status == 0
        assert house.sample("front_requests_total", route="/predict", code="499") == 2

    visit(test)


def test_realtime_goes_before_batch_and_each_in_its_order():
    async def test(house):
        house.model.hold.clear()
        going = []
        for name, priority in (("0", "realtime"), ("b1", "batch"), ("b2", "batch"), ("r1", "realtime"), ("r2", "realtime")):
            one = Exchange(house.app, "/predict", {"x-priority": priority}).start()
            one.send(name.encode(), more=False)
            going.append(one)
            await house.until(lambda: house.front.gate.seats == len(going))
            for _ in range(20):
                await asyncio.sleep(0)
        house.model.hold.set()
        for one in going:
            await one.end()
        assert [files[0].decode() for files, _ in house.model.calls] == ["0", "r1", "r2", "b1", "b2"]

    visit(test, concurrency=1, maxWaiting=10)
