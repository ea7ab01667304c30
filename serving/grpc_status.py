"""What a gRPC status says when a model, its server or a proxy before it answers with one: the one table of everyone who asks a model."""

from enum import StrEnum


class Meaning(StrEnum):
    """Who is at fault, and thereby whether the same request may be answered later."""

    REQUEST = "the request: the model refuses it"
    ABSENT = "the request: no such model or version"
    LATE = "time: no answer within the deadline"
    UNAVAILABLE = "the server: it starts, ends, queues or sheds load, or a gateway has no route to it yet"
    MODEL = "the model: it failed on this input"


# gRPC maps HTTP 429, 502, 503 and 504 to UNAVAILABLE and 404 to UNIMPLEMENTED (grpc/grpc, "HTTP to gRPC Status Code Mapping"), which is how a gateway
# without a route answers.
MEANINGS = {
    "INVALID_ARGUMENT": Meaning.REQUEST,
    "OUT_OF_RANGE": Meaning.REQUEST,
    "FAILED_PRECONDITION": Meaning.REQUEST,
    "NOT_FOUND": Meaning.ABSENT,
    "DEADLINE_EXCEEDED": Meaning.LATE,
    "UNAVAILABLE": Meaning.UNAVAILABLE,
    "UNIMPLEMENTED": Meaning.UNAVAILABLE,
    "RESOURCE_EXHAUSTED": Meaning.UNAVAILABLE,
    "ABORTED": Meaning.UNAVAILABLE,
    "CANCELLED": Meaning.UNAVAILABLE,
}


def meaning(status: str) -> Meaning:
    """Of a status by its name (UNAVAILABLE). INTERNAL, UNKNOWN and whatever else is not listed is the model's: its exceptions arrive so."""
    return MEANINGS.get(status, Meaning.MODEL)


def is_transient(status: str) -> bool:
    """Whether the status says nothing about the request itself."""
    return meaning(status) in {Meaning.LATE, Meaning.UNAVAILABLE}
