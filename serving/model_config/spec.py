"""Everything a stack says about how Triton runs a model; the keys stand directly under models.<name>."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, model_validator

from components.core.faults import Fault, refuse
from components.core.spec import Spec
from serving.model_config.batching import Batching, BatchingSpec, preferred_size_faults
from serving.model_config.instances import InstancesSpec, RateLimiterSpec
from serving.model_config.optimization import OptimizationSpec
from serving.model_config.sequence import OldestSequenceSpec, SequenceSpec
from serving.model_config.warmup import WarmupSampleSpec


class ServingSpec(Spec):
    """What is rendered to config.pbtxt, together with the model's own manifest."""

    batching: Batching = BatchingSpec()
    instances: InstancesSpec = InstancesSpec()
    sequence: Annotated[
        SequenceSpec | None, Field(description="For a model that keeps state between requests; absent: requests are independent.")
    ] = None
    response_cache: Annotated[
        bool, Field(description="Whether equal requests are answered from server.responseCacheMib; for models that always answer alike.")
    ] = False
    rate_limiter: Annotated[RateLimiterSpec | None, Field(description="When copies may run; absent: as requests come.")] = None
    warmup: Annotated[tuple[WarmupSampleSpec, ...], Field(strict=False, description="Requests a copy answers before it counts as loaded.")] = ()
    optimization: OptimizationSpec = OptimizationSpec()

    @model_validator(mode="after")
    def _sequences_have_the_batcher_for_themselves(self) -> Self:
        if self.sequence is not None:
            refuse(list(self._sequence_faults(self.sequence)))
        return self

    def _sequence_faults(self, sequence: SequenceSpec) -> Iterator[Fault]:
        settings = self.batching.batcher_settings if self.batching.dynamic else ("dynamic",)
        for key in settings:
            reason = "is a setting of the dynamic batcher, and a model with sequence has the sequence batcher instead"
            yield Fault(("batching", key), reason, f"drop batching.{key}, or drop sequence; batching.maxBatchSize may stay")
        if self.response_cache:
            reason = "cannot be used with sequence: an answer depends on the requests before it, and Triton refuses to load such a model"
            yield Fault(("responseCache",), reason, "drop responseCache")
        if isinstance(sequence, OldestSequenceSpec):
            for fault in preferred_size_faults(sequence.preferred_sizes, self.batching.max_batch_size):
                yield Fault(("sequence", *fault.keys), fault.reason, fault.way_out)
