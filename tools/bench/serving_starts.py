"""From nothing to the first answer: the start of a server, and the first request of a model with and without warm-up."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from loadtests.payloads import Document, Signature
from loadtests.samples import Answer
from loadtests.target import Target
from tools.bench.results import Figure, figures_of
from tools.bench.serving_site import grpc
from tools.errors import ToolError
from tools.triton_process import TritonProcess

POLL_SECONDS = 0.01
ANSWER_SECONDS_MAX = 60.0


async def ask(target: Target, times: int) -> list[tuple[Answer, float]]:
    """The answers to requests sent one after the other over one connection, each with its milliseconds."""
    answers = []
    async with target.session() as send:
        for turn in range(times):
            began = time.monotonic()
            answers.append((await send(turn), (time.monotonic() - began) * 1000))
    return answers


def first_answer(target: Target) -> None:
    """Return when the target answers rightly. Raises ToolError when it does not in time."""
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while time.monotonic() < deadline:
        [(answer, _)] = asyncio.run(ask(target, 1))
        if answer.error is None:
            return
        time.sleep(POLL_SECONDS)
    raise ToolError(f"no right answer within {ANSWER_SECONDS_MAX:g} s: {answer}", "see the log of the server")


def starts(log: Path, signature: Signature, document: Document, rounds: int) -> tuple[Figure, ...]:
    """From the start of the server's process to its first right answer, the one model of its Deployment loaded as in a pod."""
    times = []
    for _ in range(rounds):
        began = time.monotonic()
        with TritonProcess(log=log, arguments=["--model-control-mode=explicit", f"--load-model={signature.model}"]) as triton:
            first_answer(grpc(triton, "start", signature, document))
            times.append({"server process started to first answer": time.monotonic() - began})
    return figures_of(times, "s")


def first_requests(
    name: str, start: Callable[[], AbstractContextManager[TritonProcess]], ways: Sequence[Signature], document: Document, rounds: int
) -> tuple[Figure, ...]:
    """First and second request after a start of the same model cold and warmed up (`ways` in this order), which take turns in being asked first."""
    ratios, times = [], []
    for number in range(rounds):
        with start() as triton:
            taken = {}
            for way in ways if number % 2 == 0 else reversed(ways):
                answers = asyncio.run(ask(grpc(triton, way.model, way, document), 2))
                if failed := [answer for answer, _ in answers if answer.error]:
                    raise ToolError(f"a first request failed: {failed[0]}", f"the log of the server: {triton.log}")
                taken[way.model] = [milliseconds for _, milliseconds in answers]
        cold, warm = (taken[way.model] for way in ways)
        ratios.append({f"{name}: first request without warm-up / with": cold[0] / warm[0]})
        times.append(
            {
                f"{name}, first request without warm-up": cold[0],
                f"{name}, first request with warm-up": warm[0],
                f"{name}, second request": cold[1],
            }
        )
    return (*figures_of(ratios, ""), *figures_of(times, "ms"))
