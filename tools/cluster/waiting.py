"""Waits with a deadline, told to a person as they go."""

import http.client
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from tools.errors import ToolError

POLL_SECONDS = 0.2
PROBE_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """Tells what happened, with the seconds since the beginning."""

    say: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)

    def done(self, what: str) -> None:
        self.say(f"[{time.monotonic() - self.began:5.1f} s] {what}")


def wait_for(what: str, ready: Callable[[], bool], *, seconds: float, explain: Callable[[], str], alive: Callable[[], bool]) -> None:
    """Returns as soon as `ready()`. Raises ToolError with what `explain()` finds when `seconds` have passed or `alive()` turns false."""
    deadline = time.monotonic() + seconds
    while not ready():
        ended = not alive()
        if ended or time.monotonic() > deadline:
            reason = "the cluster's supervisor ended" if ended else f"not within {seconds:.0f} s"
            raise ToolError(f"{what}: {reason}{explain()}", "start again after looking at the logs; python -m tools.cluster delete begins afresh")
        time.sleep(POLL_SECONDS)


def accepts(address: str) -> bool:
    """Whether an address is of use now: `unix:path` accepts a connection, the API server at `api:host:port` says that it is ready."""
    kind, _, rest = address.partition(":")
    if kind == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(PROBE_SECONDS)
            return probe.connect_ex(rest) == 0
    host, _, port = rest.rpartition(":")
    # Only a yes or no is asked, without credentials: whom one talks to need not be proven for that.
    connection = http.client.HTTPSConnection(host, int(port), timeout=PROBE_SECONDS, context=ssl._create_unverified_context())  # noqa: S323, SLF001
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
