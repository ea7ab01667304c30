"""What a caller may ask for beside the prediction: version, priority, less time. By header or by query parameter."""

from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Header, Query, Request
from pydantic import BeforeValidator

from serving.contract import PRIORITY_HEADER, TIMEOUT_HEADER, VERSION_HEADER
from serving.front.faults import bad_request
from serving.front.settings import Priority

# Triton keeps versions as 64-bit numbers.
VersionText = Annotated[str | None, Query(pattern="^[1-9][0-9]{0,17}$", description="Version to ask; absent: the weights decide.")]
VersionHeader = Annotated[str | None, Header(alias=VERSION_HEADER, pattern="^[1-9][0-9]{0,17}$", description="The same as `version`.")]
PriorityText = Annotated[Priority | None, Query(description="realtime goes before batch, here and in Triton where the model has priority levels.")]
PriorityHeader = Annotated[Priority | None, Header(alias=PRIORITY_HEADER, description="The same as `priority`.")]


def _digits(value: object) -> object:
    """Pydantic alone takes `5_0`, `+50` and ` 50 ` for 50."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise ValueError("is no whole number")
    return value


TimeoutText = Annotated[
    int | None,
    BeforeValidator(_digits),
    Query(ge=1, le=3_600_000, description="Longest time until the answer, in ms; absent: the front's own limit."),
]
TimeoutHeader = Annotated[
    int | None, BeforeValidator(_digits), Header(alias=TIMEOUT_HEADER, ge=1, le=3_600_000, description="The same as `timeout_ms`.")
]
PARAMETERS, HEADERS = ("version", "priority", "timeout_ms"), (VERSION_HEADER, PRIORITY_HEADER, TIMEOUT_HEADER)

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """What the caller asked for; None: nothing."""

    version: str | None
    priority: Priority | None
    timeout_ms: int | None

    def seconds(self, limit: float) -> float:
        return limit if self.timeout_ms is None else min(limit, self.timeout_ms / 1000)


def check_said_once(request: Request) -> None:
    """RequestFault 400 for a wish that is sent more than once, with different values: to choose one would be to ignore the other."""
    for what, sent, names in (("header", request.headers, HEADERS), ("parameter", request.query_params, PARAMETERS)):
        for name in names:
            if len(set(sent.getlist(name))) > 1:
                raise bad_request(f"{what} {name} is sent more than once, with different values: drop all but one")


def options(
    version: VersionText = None,
    priority: PriorityText = None,
    timeout_ms: TimeoutText = None,
    x_model_version: VersionHeader = None,
    x_priority: PriorityHeader = None,
    x_timeout_ms: TimeoutHeader = None,
) -> Options:
    """The wishes of a request; RequestFault 400 when header and parameter contradict each other."""
    return Options(
        one_of(version, x_model_version, "version", VERSION_HEADER),
        one_of(priority, x_priority, "priority", PRIORITY_HEADER),
        one_of(timeout_ms, x_timeout_ms, "timeout_ms", TIMEOUT_HEADER),
    )


def one_of(parameter: T | None, header: T | None, name: str, header_name: str) -> T | None:
    if parameter is not None and header is not None and parameter != header:
        raise bad_request(f"parameter {name} says {parameter} and header {header_name} says {header}: drop one")
    return header if parameter is None else parameter
