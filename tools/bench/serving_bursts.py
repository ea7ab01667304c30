"""How long a burst takes that arrives at once and is followed by nothing."""

import asyncio
import time
from collections.abc import Sequence

from loadtests.target import Target
from tools.bench.results import Figure, figures_of
from tools.errors import ToolError


def bursts(targets: Sequence[Target], *, requests: int, rounds: int) -> tuple[Figure, ...]:
    """Seconds until the last of `requests` simultaneous requests is answered, for each target alone, in turn."""
    return figures_of(
        [{f"burst of {requests}, {target.name}": asyncio.run(_burst(target, requests)) for target in targets} for _ in range(rounds)], "s"
    )


async def _burst(target: Target, requests: int) -> float:
    async with target.session() as send:
        began = time.monotonic()
        answers = await asyncio.gather(*(send(turn) for turn in range(requests)))
    if failed := [answer for answer in answers if answer.error]:
        raise ToolError(f"{len(failed)} requests of a burst failed: {failed[0]}", "see the log of the server")
    return time.monotonic() - began
