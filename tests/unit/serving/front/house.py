"""A front with a model that does what the test says, and raw HTTP exchanges with it: what httpx cannot do is to read while it sends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

from serving.front.app import create_app
from serving.front.settings import FrontSettingsSpec
from serving.front.state import Front
from serving.front.triton import Answer, Call

SIGNATURE = {
    "inputs": [{"name": "content", "datatype": "BYTES", "dims": [-1, 1]}],
    "outputs": [{"name": "label", "datatype": "BYTES", "dims": [-1, 1]}],
}
# Longer than anything here may take; what waits for it hangs.
HANG_SECONDS = 20


def settings(model=None, body_memory_mib=64, p99_ms=200.0, **limits) -> FrontSettingsSpec:
    target = {"name": "echo", "address": "127.0.0.1:1", "signature": SIGNATURE, "maxBatchSize": 8, **(model or {})}
    document = {"model": target, "limits": limits, "p99Ms": p99_ms, "bodyMemoryMib": body_memory_mib, "drainSeconds": 0}
    return FrontSettingsSpec.model_validate(document)


class StubModel:
    """Answers the size of each file; `hold` keeps requests at the model until it is set, `fault` may raise what the model would."""

    def __init__(self, largest_batch: int = 8) -> None:
        self.largest_batch = largest_batch
        self.calls: list[tuple[list[bytes], Call]] = []
        self.at_the_model = self.most_at_once = self.cancelled = 0
        self.hold = asyncio.Event()
        self.hold.set()
        self.fault: Callable[[list[bytes]], None] = lambda _: None
        self.is_ready = True

    async def infer(self, files: list[bytes], call: Call) -> Answer:
        self.calls.append((list(files), call))
        self.at_the_model += 1
        self.most_at_once = max(self.most_at_once, self.at_the_model)
        try:
            await self.hold.wait()
            self.fault(list(files))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_the_model -= 1
        return Answer("1", [{"size": len(file), "head": file[:8].decode("latin-1")} for file in files])

    async def ready(self, seconds: float) -> bool:
        return self.is_ready

    async def close(self) -> None:
        pass


@dataclass
class House:
    """A front, its model, and a client of it."""

    front: Front
    model: StubModel
    client: httpx.AsyncClient
    app: Any

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let the loop run until `condition` holds."""
        async with asyncio.timeout(HANG_SECONDS):
            while not condition():  # noqa: ASYNC110  a condition of the test's own, which nothing announces
                await asyncio.sleep(0)

    def sample(self, name: str, **labels: str) -> float:
        return self.front.metrics.registry.get_sample_value(name, labels) or 0.0


def visit(test: Callable[[House], Awaitable[None]], *, memory: int = 64, largest_batch: int = 8, **limits: Any) -> None:
    """Run `test` with a front of these limits in a loop of its own; a test that hangs fails."""

    async def run() -> None:
        front = Front(settings(body_memory_mib=memory, **limits), model := StubModel(largest_batch))
        app = create_app(front)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://front") as client, asyncio.timeout(HANG_SECONDS):
            await test(House(front, model, client, app))

    asyncio.run(run())


@dataclass
class Exchange:
    """One request below HTTP: chunks are sent when the test says so, and what has been answered can be read at any time."""

    app: Any
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""
    status: int = 0
    body: bytes = b""
    reading: bool = True
    raised: BaseException | None = None

    def __post_init__(self) -> None:
        self._in: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self.answered_headers: dict[str, str] = {}
        self._resumed = asyncio.Event()

    def start(self) -> "Exchange":
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": self.query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in self.headers.items()],
            "client": ("192.0.2.1", 1),
            "server": ("front", 80),
            "state": {},
        }
        self._task = asyncio.create_task(self.app(scope, self._in.get, self._send))
        return self

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.answered_headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        while not self.reading:
            self._resumed.clear()
            await self._resumed.wait()
        self.body += message.get("body", b"")

    def read_on(self) -> None:
        self.reading = True
        self._resumed.set()

    def send(self, chunk: bytes, *, more: bool = True) -> None:
        self._in.put_nowait({"type": "http.request", "body": chunk, "more_body": more})

    @property
    def unread(self) -> int:
        """Chunks that the front has not taken yet."""
        return self._in.qsize()

    def hang_up(self) -> None:
        self._in.put_nowait({"type": "http.disconnect"})

    async def end(self) -> "Exchange":
        assert self._task is not None
        await self._task
        return self

    @property
    def over(self) -> bool:
        assert self._task is not None
        return self._task.done()


async def exchange(app: Any, path: str, chunks: Iterable[bytes], **parts: Any) -> Exchange:
    """A whole exchange: all chunks, then the end of the body."""
    going = Exchange(app, path, **parts).start()
    for chunk in chunks:
        going.send(chunk)
    going.send(b"", more=False)
    return await going.end()


async def as_chunks(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
