"""What the HTTP front costs: a request through it against one past it, and how many items its batch endpoint answers."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from components.core.front import FrontLimitsSpec
from loadtests.address import own_address
from loadtests.front_target import FrontTarget
from loadtests.payloads import Document
from serving.front.settings import ModelTargetSpec
from serving.model_config import SignatureSpec
from tools.bench.results import Figure, figures_of
from tools.bench.serving_models import signature
from tools.bench.serving_protocols import compare
from tools.bench.serving_site import grpc
from tools.errors import ToolError
from tools.front_process import FrontProcess
from tools.triton_process import TritonProcess

REQUEST_SECONDS = 120
BLOCK = 1 << 20
COMPLETE = b'"complete": true'


@contextmanager
def front_of(triton: TritonProcess, model: str, tensors: SignatureSpec, max_batch_size: int) -> Iterator[FrontProcess]:
    """A front before `model`, ready; its limits are the defaults."""
    target = ModelTargetSpec(name=model, address=triton.grpc, signature=tensors, max_batch_size=max_batch_size)
    with FrontProcess(target, FrontLimitsSpec()) as front:
        front.wait_ready()
        yield front


def overhead(triton: TritonProcess, front: FrontProcess, model: str, document: Document, *, rate: float, seconds: float) -> tuple[Figure, ...]:
    """Latencies both ways in ms and their ratio; the two take turns at `rate` in all, so both meet the same machine."""
    size = f"{len(document.content) / 1024:g} KiB"
    through = FrontTarget(
        name=f"front, {size}", address=own_address("127.0.0.1", front.port), authority="localhost", signature=signature(model), documents=(document,)
    )
    direct = grpc(triton, f"gRPC, {size}", signature(model), document)
    return compare((direct, through), rate=rate, seconds=seconds, rounds=3)


def batch_rate(front: FrontProcess, model: str, name: str, lines: bytes, *, rounds: int = 3) -> tuple[Figure, ...]:
    """Items per second of one batch request whose body is `lines`. Raises ToolError when not every item was answered."""
    figures = []
    for _ in range(rounds):
        began = time.perf_counter()
        answer = exchange(front.port, f"/v1/models/{model}/batch", lines)
        seconds = time.perf_counter() - began
        if COMPLETE not in answer or b'"failed": 0' not in answer:
            raise ToolError(f"the batch was not answered whole: {answer[-200:].decode(errors='replace')}", f"see {front.log}")
        figures.append({f"batch endpoint, {name}": answer.count(b'{"index":') / seconds})
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
