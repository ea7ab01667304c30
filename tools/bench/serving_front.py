"""How many items the batch endpoint of the HTTP front answers."""

import base64
import json
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from serving.front.settings import ModelTargetSpec
from serving.model_config import SignatureSpec
from tools.bench.results import Figure, figures_of
from tools.errors import ToolError
from tools.front_process import FrontProcess
from tools.triton_process import TritonProcess

REQUEST_SECONDS = 120
BLOCK = 1 << 20
COMPLETE = b'"complete": true'


@dataclass(frozen=True, kw_only=True)
class Items:
    """A batch request: `count` times the same `content` for `model`."""

    name: str
    model: str
    tensors: SignatureSpec
    content: bytes
    count: int

    @property
    def lines(self) -> bytes:
        return json.dumps({"b64": base64.b64encode(self.content).decode()}).encode() + b"\n"


def batch_rates(triton: TritonProcess, cases: Sequence[Items], *, max_batch_size: int, rounds: int = 3) -> tuple[Figure, ...]:
    """Items per second of the batch endpoint, one request at a time, a front with its default limits before each model."""
    figures: list[Figure] = []
    for case in cases:
        target = ModelTargetSpec(name=case.model, address=triton.grpc, signature=case.tensors, max_batch_size=max_batch_size)
        with FrontProcess(target) as front:
            front.wait_ready()
            figures += batch_rate(front, case, rounds)
    return tuple(figures)


def batch_rate(front: FrontProcess, case: Items, rounds: int) -> tuple[Figure, ...]:
    """Items per second of one batch request. Raises ToolError when not every item was answered."""
    body = case.lines * case.count
    figures = []
    for _ in range(rounds):
        began = time.perf_counter()
        answer = exchange(front.port, f"/v1/models/{case.model}/batch", body)
        seconds = time.perf_counter() - began
        if COMPLETE not in answer or b'"failed": 0' not in answer:
            raise ToolError(f"the batch was not answered whole: {answer[-200:].decode(errors='replace')}", f"see {front.log}")
        figures.append({f"batch endpoint, {case.name}": answer.count(b'{"index":') / seconds})
    return figures_of(figures, "items/s")


def exchange(port: int, path: str, body: bytes) -> bytes:
    """The answer as it came over the wire, chunks and all; it is read while the body is sent, which the standard library's client does not do."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=REQUEST_SECONDS) as connection, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(connection.sendall, head + body)
        received = bytearray()
        while chunk := connection.recv(BLOCK):
            received += chunk
        sending.result()
    return bytes(received)
