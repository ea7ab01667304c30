"""Limits of the HTTP front, which the stack file sets and the running front keeps."""

from typing import Annotated

from pydantic import Field

from components.core.spec import Spec

MIB = 1024 * 1024


class FrontLimitsSpec(Spec):
    """What one pod of the front takes on at most; beyond it answers 429, 413 or 504 instead of growing."""

    concurrency: Annotated[int, Field(ge=1, le=1024, description="Requests at the model at once, per pod of the front; further ones wait.")] = 16
    max_waiting: Annotated[int, Field(ge=0, le=10_000, description="Requests that may wait, per pod; further ones are answered 429.")] = 64
    max_request_mib: Annotated[int, Field(ge=1, le=1024, description="Largest body of a request and largest item of a batch, in MiB.")] = 2
    timeout_seconds: Annotated[
        float, Field(ge=0.001, le=3600, description="Longest time of a request, its body and its waiting included; a caller may ask for less.")
    ] = 30
    batch_streams: Annotated[int, Field(ge=1, le=256, description="Batch requests at once, per pod; further ones are answered 429.")] = 2
    batch_in_flight: Annotated[int, Field(ge=1, le=256, description="Requests at the model at once, per batch request.")] = 4

    @property
    def max_request_bytes(self) -> int:
        return self.max_request_mib * MIB
