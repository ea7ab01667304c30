"""Sequence batching: requests that belong together go to the same copy of the model, in order."""

from typing import Annotated, Literal

from pydantic import Field

from components.core.spec import Spec
from serving.model_config.batching import PreferredSizes, QueueDelay

# Triton's own default (triton-inference-server/core src/constants.h, SEQUENCE_IDLE_DEFAULT_MICROSECONDS).
IDLE_DEFAULT_MICROSECONDS = 1_000_000


class _SequenceSpec(Spec):
    max_idle_microseconds: Annotated[
        int, Field(ge=1, le=86_400_000_000, description="A sequence without a request for this long, in microseconds, is given up.")
    ] = IDLE_DEFAULT_MICROSECONDS
    streamed: Annotated[
        bool,
        Field(description="Clients send all requests of a sequence through one gRPC stream, so that they reach one pod even where several serve."),
    ] = False
    max_queue_delay_microseconds: QueueDelay = 0


class DirectSequenceSpec(_SequenceSpec):
    """Each sequence holds a slot of the batch until it ends; the model is told which slots are ready."""

    strategy: Literal["direct"]
    minimum_slot_utilization_percent: Annotated[
        int, Field(ge=0, le=100, description="Share of slots with a request, in percent, that ends the wait of maxQueueDelayMicroseconds.")
    ] = 0


class OldestSequenceSpec(_SequenceSpec):
    """The oldest requests of different sequences are joined to a batch."""

    strategy: Literal["oldest"]
    max_candidate_sequences: Annotated[int, Field(ge=1, le=1_000_000, description="Sequences in work at once per copy; further ones wait.")]
    preferred_sizes: PreferredSizes = ()
    preserve_ordering: Annotated[bool, Field(description="Whether answers leave in the order of their requests.")] = False


SequenceSpec = Annotated[DirectSequenceSpec | OldestSequenceSpec, Field(discriminator="strategy")]
