"""Around every request: its id, its log line, its place in the metrics, and an answer to whatever goes wrong. Plain ASGI, so bodies stream."""

import json
import logging
import re
import time
import uuid
from http import HTTPStatus
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.contract import REQUEST_ID_HEADER
from serving.front.faults import CLIENT_GONE, RequestFault
from serving.front.metrics import FrontMetrics

ACCESS_LOG = logging.getLogger("serving.front.access")
LOG = logging.getLogger("serving.front")
REQUEST_ID = re.compile(r"[!-~]{1,128}")
# Asked every few seconds by the kubelet; they would drown the rest.
QUIET = ("/health/",)
REJECTIONS = {413: "too_large", 429: "queue_full", 408: "request_timeout"}


def fault_response(fault: RequestFault, request_id: str) -> JSONResponse:
    """The JSON answer of a fault."""
    return JSONResponse({"error": {**fault.body(), "request_id": request_id}}, fault.status, fault.headers())


class Observed:
    """ASGI middleware; the innermost `scope["state"]["note"]` is a dict that handlers add to and the log line shows."""

    def __init__(self, app: ASGIApp, metrics: FrontMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await _Exchange(scope, send, self._metrics).run(self._app, receive)


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, send: Send, metrics: FrontMetrics) -> None:
        self._scope, self._send, self._metrics = scope, send, metrics
        self._started = time.perf_counter()
        self._status = 0
        self._bytes_out = 0
        given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        self._id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        self._note: dict[str, Any] = {}
        scope.setdefault("state", {}).update(request_id=self._id, note=self._note)

    async def run(self, app: ASGIApp, receive: Receive) -> None:
        """Every end is an answer: a fault its own, a bug a 500 that says nothing of the inside. A caller who left gets none."""
        try:
            await app(self._scope, receive, self._observe)
        except ClientDisconnect:
            self._status = CLIENT_GONE
        except Exception:
            LOG.exception("request %s failed", self._id)
            if self._status:
                # Half an answer is out: only a connection that breaks says that it is no whole one.
                raise
            fault = RequestFault(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "a fault of the front; its log says more")
            await fault_response(fault, self._id)(self._scope, receive, self._observe)
        finally:
            self._record()

    async def _observe(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID_HEADER] = self._id
        elif message["type"] == "http.response.body":
            self._bytes_out += len(message.get("body", b""))
        await self._send(message)

    def _record(self) -> None:
        path = self._scope["path"]
        if path.startswith(QUIET):
            return
        # The template, never the path: a caller must not be able to make series.
        route = getattr(self._scope.get("route"), "path", "other")
        seconds = time.perf_counter() - self._started
        self._metrics.requests.labels(route, str(self._status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        if reason := self._note.pop("rejected", REJECTIONS.get(self._status)):
            self._metrics.rejected.labels(reason).inc()
        client = self._scope.get("client")
        line = {
            "request_id": self._id,
            "method": self._scope["method"],
            "route": route,
            "status": self._status,
            "ms": round(seconds * 1000, 3),
            "bytes_out": self._bytes_out,
            "peer": client[0] if client else None,
            **self._note,
        }
        ACCESS_LOG.info("%s", json.dumps(line))
