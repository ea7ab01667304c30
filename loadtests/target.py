"""What the engine needs of a protocol: a session that sends the i-th request of a cycle and says what came back."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from loadtests.samples import Answer

Send = Callable[[int], Awaitable[Answer]]


class Target(Protocol):
    """Somewhere to send requests. `send` turns every failure of the network or the service into an Answer; what it raises is a fault of the program."""

    @property
    def name(self) -> str: ...

    @property
    def protocol(self) -> str: ...

    def session(self) -> AbstractAsyncContextManager[Send]: ...
