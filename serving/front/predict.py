"""One file in, one prediction out."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from serving.front.admission import Allowance
from serving.front.bodies import MULTIPART, media_type, read_one_file, read_plain
from serving.front.faults import RequestFault, late, too_large
from serving.front.options import Options
from serving.front.state import Front
from serving.front.triton import Answer, Call

T = TypeVar("T")


class Deadline:
    """The time of one request, and what it is spent on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.doing = "reading the body"
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.001, self._end - time.monotonic())

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """RequestFault 408 or 504 when what is inside takes longer."""
        try:
            async with asyncio.timeout(self.seconds):
                yield
        except TimeoutError:
            raise late(self.doing, self.seconds) from None


async def predict(front: Front, request: Request, wishes: Options) -> Answer:
    """Take a seat, read the body, wait for a turn, ask the model; RequestFault when any of these does not work out."""
    note: dict[str, Any] = request.state.note
    with front.gate.seat(), Allowance(front.memory) as held:
        deadline = Deadline(wishes.seconds(front.limits.timeout_seconds))
        async with deadline.kept():
            content = await _read(front, request, held)
            note["bytes_in"] = len(content)
            return await unless_gone(request, _ask(front, content, wishes, deadline, request))


async def _read(front: Front, request: Request, held: Allowance) -> bytes:
    refuse_compressed(request)
    chunks = _limited(front, request, held)
    content_type = request.headers.get("content-type", "")
    if media_type(content_type) == MULTIPART:
        return await read_one_file(chunks, content_type, front.limits.max_request_bytes)
    return await read_plain(chunks)


async def _limited(front: Front, request: Request, held: Allowance) -> AsyncIterator[bytes]:
    """The body's chunks, counted against the limit of a request and the memory of all; what its length announces is counted at once."""
    limit, retry_after = front.limits.max_request_bytes, front.gate.retry_after()
    announced = request.headers.get("content-length", "")
    total = int(announced) if announced.isdecimal() else 0
    if total > limit:
        raise too_large(limit)
    held.cover(total, retry_after)
    arrived = 0
    async for chunk in request.stream():
        arrived += len(chunk)
        if arrived > limit:
            raise too_large(limit)
        held.cover(arrived, retry_after)
        yield chunk


async def _ask(front: Front, content: bytes, wishes: Options, deadline: Deadline, request: Request) -> Answer:
    priority = wishes.priority or "realtime"
    entered = time.monotonic()
    deadline.doing = "waiting for a turn"
    async with front.gate.turn(priority):
        started = time.monotonic()
        request.state.note.update(priority=priority, queue_ms=round((started - entered) * 1000, 3))
        deadline.doing = "at the model"
        call = Call(deadline.left, wishes.version or "", priority, request.state.request_id)
        answer = await front.model.infer([content], call)
        front.metrics.model_seconds.observe(time.monotonic() - started)
        request.state.note["version"] = answer.version
        return answer


def refuse_compressed(request: Request) -> None:
    """What a compressed body grows to has no limit that its length could say."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in {"", "identity"}:
        raise RequestFault(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", "send the body uncompressed")


def check_model(front: Front, model: str) -> None:
    """RequestFault 404 for a model that is not behind this front."""
    if model != front.settings.model.name:
        message = f"this front serves model {front.settings.model.name!r}"
        raise RequestFault(HTTPStatus.NOT_FOUND, "not_found", message)


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled, at the model too, when the caller hangs up. Raises ClientDisconnect then."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
