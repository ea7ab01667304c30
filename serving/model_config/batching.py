"""Dynamic batching: how the server joins requests."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from components.core.spec import Spec


class BatchingSpec(Spec):
    """How the server joins requests; with `maxBatchSize` 0 there is no batcher and nothing to set on it."""

    max_batch_size: Annotated[int, Field(ge=0, le=1024, description="Largest batch; 0: tensors are passed as they come.")] = 0
    preferred_sizes: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False, description="Sizes worth waiting for, ascending, at most maxBatchSize.")
    ] = ()
    max_queue_delay_microseconds: Annotated[
        int | None, Field(ge=0, le=10_000_000, description="Longest time a request waits for others to join it; absent: it never waits.")
    ] = None
    max_queue_size: Annotated[int | None, Field(ge=1, description="Requests that may wait; further ones are refused. Absent: no limit.")] = None

    @model_validator(mode="after")
    def _settings_have_a_batcher(self) -> Self:
        if self.max_batch_size > 0:
            return self
        # All three live in Triton's batcher (triton-inference-server/server#6368).
        for key, is_set in (
            ("preferredSizes", bool(self.preferred_sizes)),
            ("maxQueueDelayMicroseconds", self.max_queue_delay_microseconds is not None),
            ("maxQueueSize", self.max_queue_size is not None),
        ):
            if is_set:
                raise ValueError(f"{key} is a setting of the batcher, and maxBatchSize 0 means that there is none; set maxBatchSize or drop {key}")
        return self

    @model_validator(mode="after")
    def _preferred_sizes_can_be_reached(self) -> Self:
        sizes = list(self.preferred_sizes)
        if sizes != sorted(set(sizes)):
            raise ValueError(f"preferredSizes {sizes} must ascend without repetition")
        if sizes and self.max_batch_size and sizes[-1] > self.max_batch_size:
            raise ValueError(f"preferredSizes {sizes}: {sizes[-1]} is above maxBatchSize {self.max_batch_size} and can never be reached")
        return self
