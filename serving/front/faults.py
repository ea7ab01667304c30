"""What a request is answered with when it is not served: a status, a code for programs and a sentence for people."""

import math
from http import HTTPStatus
from typing import Any

from serving.grpc_status import Meaning, meaning

# Not in HTTPStatus: nginx's code for a caller who left; it is logged and counted, nobody receives it.
CLIENT_GONE = 499
# A message of the model's own is passed on up to here, and its first line only: what follows is a stack trace.
MESSAGE_CHARACTERS = 300


class RequestFault(Exception):  # noqa: N818  an answer, which may be nobody's error
    """The answer to a request that is not served. `retry_after` in seconds: when it is worth trying again; None: not as it is."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_after = int(status), code, message, retry_after

    def body(self) -> dict[str, Any]:
        """The fault as part of a JSON answer."""
        return {"code": self.code, "message": self.message, "retryable": self.retry_after is not None}

    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(max(1, math.ceil(self.retry_after)))}


def bad_request(message: str) -> RequestFault:
    return RequestFault(HTTPStatus.BAD_REQUEST, "bad_request", message)


def too_large(limit_bytes: int) -> RequestFault:
    return RequestFault(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", f"more than {limit_bytes} bytes (front.maxRequestMib)")


def late(doing: str, seconds: float) -> RequestFault:
    """The deadline passed while `doing`; 408 when it is the caller who was slow."""
    if doing == "reading the body":
        return RequestFault(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", f"the body was not there within {seconds:g} s")
    return RequestFault(HTTPStatus.GATEWAY_TIMEOUT, "deadline_exceeded", f"no answer within {seconds:g} s; the time passed while {doing}")


def of_grpc(status: str, details: str, retry_after: float) -> RequestFault:
    """The fault behind a gRPC status that Triton, or a proxy before it, answered; `status` by its name (UNAVAILABLE).

    INTERNAL is what a Python model's exceptions become, stack trace included (triton-inference-server/python_backend src/pb_stub.cc), so the text
    stays here.
    """
    said = first_line(details)
    match meaning(status):
        case Meaning.REQUEST:
            return bad_request(f"the model refuses the input: {said}")
        case Meaning.ABSENT:
            return RequestFault(HTTPStatus.NOT_FOUND, "not_found", said)
        case Meaning.LATE:
            return RequestFault(HTTPStatus.GATEWAY_TIMEOUT, "deadline_exceeded", "the model did not answer in time")
        case Meaning.UNAVAILABLE:
            return RequestFault(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "the model takes no requests at the moment", retry_after)
        case Meaning.MODEL:
            return RequestFault(HTTPStatus.BAD_GATEWAY, "model_failed", "the model failed on this input; its log says why")


def first_line(text: str) -> str:
    """What may be passed on of a message."""
    return text.strip().partition("\n")[0].strip()[:MESSAGE_CHARACTERS]
