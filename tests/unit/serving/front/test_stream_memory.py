"""What a batch holds while its receiver does not read."""

import asyncio

from tests.unit.serving.front.house import Exchange, visit
from tests.unit.serving.front.test_stream import BATCH, MIB, NDJSON, answers, line


def test_a_receiver_who_does_not_read_stops_the_reading():
    """Else answers, or items, would pile up in memory."""

    async def test(house):
        going = Exchange(house.app, BATCH, NDJSON, reading=False).start()
        for _ in range(200):
            going.send(line("x") * 8)
        await house.until(lambda: len(house.model.calls) == 2)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(house.model.calls) == 2
        # Two requests of eight, sixteen items that wait, and the chunk in hand.
        assert going.unread >= 194
        going.read_on()
        going.send(b"", more=False)
        await going.end()
        assert answers(going.body)[1] == {"items": 1600, "failed": 0, "complete": True}

    visit(test, batchInFlight=2)


def test_items_are_held_within_half_of_the_memory_for_bodies():
    async def test(house):
        house.model.hold.clear()
        going = Exchange(house.app, BATCH, NDJSON).start()
        for _ in range(10):
            going.send(line("x" * (MIB - 10)))
        await house.until(lambda: house.model.at_the_model == 2)
        for _ in range(100):
            await asyncio.sleep(0)
        assert house.front.memory.held <= 2 * MIB
        assert house.front.stream_memory.held == house.front.memory.held
        house.model.hold.set()
        going.send(b"", more=False)
        await going.end()
        assert answers(going.body)[1]["items"] == 10
        assert (house.front.memory.held, house.front.stream_memory.held) == (0, 0)
        # No request to the model is larger than one of the front's own may be.
        assert {len(files) for files, _ in house.model.calls} == {1}

    visit(test, memory=4, maxRequestMib=1)


def test_receivers_who_do_not_read_leave_memory_for_requests_of_one_file():
    async def test(house):
        going = [Exchange(house.app, BATCH, NDJSON, reading=False).start() for _ in range(2)]
        for each in going:
            for _ in range(20):
                each.send(line("x" * (MIB - 10)))
        await house.until(lambda: house.front.stream_memory.held > house.front.stream_memory.total - MIB)
        for _ in range(100):
            await asyncio.sleep(0)
        statuses = [(await house.client.post("/predict", content=b"x" * MIB)).status_code for _ in range(3)]
        assert statuses == [200] * 3
        assert all(each.unread for each in going)
        for each in going:
            each.send(b"", more=False)
            each.read_on()
        for each in going:
            await each.end()
        assert (house.front.memory.held, house.front.stream_memory.held) == (0, 0)

    visit(test, memory=8, maxRequestMib=1)
