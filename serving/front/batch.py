"""The batch endpoint: an answer that begins while its request is still on its way."""

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from serving.front.bodies import MULTIPART, PartReader, media_type
from serving.front.faults import RequestFault
from serving.front.items import Item, file_items, json_items
from serving.front.options import Options
from serving.front.state import Front
from serving.front.stream import BatchRun
from serving.front.triton import Call

NDJSON = "application/x-ndjson"
# A sender who sends nothing for this long, or a receiver who takes nothing, holds a stream that others wait for.
STALL_SECONDS = 60.0
# What so much waiting for a sender must bring, so that a byte now and then keeps no seat: an item, or most of one.
STALL_BYTES = 64


class BatchResponse(Response):
    """Reads the request and writes the answer at the same time, which Starlette's own streaming response cannot: it listens for a hang-up itself.

    The last line, {"end": ...}, says whether all items were read; an answer without it was cut off.
    """

    media_type = NDJSON

    def __init__(self, front: Front, request: Request, wishes: Options) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._front, self._request, self._wishes = front, request, wishes
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  the request reads
        async def write(lines: bytes) -> None:
            async with asyncio.timeout(STALL_SECONDS):
                if not self._started:
                    self._started = True
                    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": lines, "more_body": True})

        with self._front.streams.seat():
            run, gone = BatchRun(self._front, self._call, write), False
            try:
                await run.run(self._items())
            except* (ClientDisconnect, TimeoutError):
                # Raised here it would be in a group again.
                gone = True
            if gone:
                raise ClientDisconnect
            if run.fault and not self._started:
                raise run.fault
            self._request.state.note.update(items=run.tally.items, failed=run.tally.failed)
            await write(_end(run))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _call(self) -> Call:
        version, priority = self._wishes.version or "", self._wishes.priority or "batch"
        return Call(self._wishes.seconds(self._front.limits.timeout_seconds), version, priority, self._request.state.request_id)

    def _items(self) -> AsyncIterator[Item]:
        content_type = self._request.headers.get("content-type", "")
        limit = self._front.limits.max_request_bytes
        if media_type(content_type) == MULTIPART:
            return file_items(PartReader(content_type, limit), self._chunks())
        return json_items(self._chunks(), limit)

    async def _chunks(self) -> AsyncIterator[bytes]:
        """The body until its end. RequestFault when this pod drains, or nothing comes any more: what has been read is answered all the same."""
        stream = aiter(self._request.stream())
        drained = asyncio.ensure_future(self._front.draining.wait())
        clock, waited, brought = asyncio.get_running_loop().time, 0.0, 0
        try:
            while True:
                step, began = asyncio.ensure_future(anext(stream, None)), clock()
                await asyncio.wait({step, drained}, timeout=max(0.0, STALL_SECONDS - waited), return_when=asyncio.FIRST_COMPLETED)
                if not step.done():
                    step.cancel()
                    await asyncio.gather(step, return_exceptions=True)
                    raise draining() if drained.done() else RequestFault(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", "nothing more was sent")
                if (chunk := step.result()) is None:
                    return
                waited, brought = waited + clock() - began, brought + len(chunk)
                if brought >= STALL_BYTES:
                    waited, brought = 0.0, 0
                yield chunk
        finally:
            drained.cancel()


def draining() -> RequestFault:
    return RequestFault(HTTPStatus.SERVICE_UNAVAILABLE, "draining", "this pod is on its way out; send the rest again", 1)


def _end(run: BatchRun) -> bytes:
    fault = {} if run.fault is None else {"error": run.fault.body()}
    return json.dumps({"end": {"items": run.tally.items, "failed": run.tally.failed, "complete": run.fault is None, **fault}}).encode() + b"\n"
