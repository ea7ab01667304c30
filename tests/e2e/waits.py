"""Waiting for a condition: with a deadline, and with the last state seen in the message."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(what: str, look: Callable[[], T], done: Callable[[T], bool], *, seconds: float, every: float = 0.25) -> T:
    """Return the first state for which `done` holds; raise AssertionError with the last state when the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        state = look()
        if done(state):
            return state
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what}: not within {seconds:g} s; last seen: {state!r}")
        time.sleep(every)
