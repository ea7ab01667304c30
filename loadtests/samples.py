"""What is recorded about one request."""

from dataclasses import dataclass
from enum import StrEnum

# Enough of an error to recognise it; a run keeps every sample in memory.
DETAIL_MAX = 200


class ErrorKind(StrEnum):
    """Why a request failed, seen from the caller."""

    CONNECT = "connect"  # no connection came about: the server never saw the request
    BROKEN = "broken"  # the connection ended before the answer was complete
    TIMEOUT = "timeout"
    STATUS = "status"  # an HTTP status of 400 or more, or a gRPC status that is not OK
    ANSWER = "answer"  # an answer that cannot be read or says the wrong thing
    NOT_SENT = "not-sent"  # more requests were waiting than the plan allows


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `status` is the HTTP or gRPC code, None without an answer; `detail` explains an error."""

    status: int | None
    version: str = ""
    error: ErrorKind | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One request; times are seconds of the monotonic clock."""

    target: str
    protocol: str
    planned: float
    sent: float
    done: float
    answer: Answer

    @property
    def latency(self) -> float:
        """From the planned time, so that a stall counts for everyone who had to wait for it, also inside the generator."""
        return self.done - self.planned

    @property
    def service_time(self) -> float:
        return self.done - self.sent

    @property
    def lag(self) -> float:
        return self.sent - self.planned

    @property
    def failed(self) -> bool:
        return self.answer.error is not None


@dataclass(frozen=True, slots=True)
class Mark:
    """From `at` on (monotonic seconds), planned requests belong to phase `name`."""

    name: str
    at: float
