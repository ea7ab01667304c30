"""Dynamic batching: how the server joins requests, which go first, and how long one may wait.

The rules are Triton's own (triton-inference-server/core src/model_config_utils.cc, ValidateModelConfig), and what it accepts although it cannot
have been meant.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from components.core.faults import Fault, refuse
from components.core.spec import Spec

MAX_BATCH_SIZE = 1024
MAX_DELAY_MICROSECONDS = 10_000_000
MAX_TIMEOUT_MICROSECONDS = 3_600_000_000

PreferredSizes = Annotated[
    tuple[Annotated[int, Field(ge=1, le=MAX_BATCH_SIZE)], ...],
    Field(strict=False, description="Batch sizes worth waiting for, ascending, at most maxBatchSize; empty: the largest."),
]
QueueDelay = Annotated[
    int, Field(ge=0, le=MAX_DELAY_MICROSECONDS, description="Longest time a request waits for others to join it, in microseconds; 0: it never waits.")
]


class QueuePolicySpec(Spec):
    """What may wait for the model, and for how long."""

    max_size: Annotated[int | None, Field(ge=1, le=1_000_000, description="Requests that may wait; further ones are refused. Absent: no limit.")] = (
        None
    )
    timeout_microseconds: Annotated[
        int | None, Field(ge=1, le=MAX_TIMEOUT_MICROSECONDS, description="Longest wait of a request, in microseconds. Absent: no limit.")
    ] = None
    timeout_action: Annotated[
        Literal["reject", "delay"], Field(description="What becomes of a request that waited that long: refused, or served after all others.")
    ] = "reject"
    allow_timeout_override: Annotated[
        bool, Field(description="Whether a request may ask for a shorter wait, or any where timeoutMicroseconds is absent.")
    ] = False

    @model_validator(mode="after")
    def _an_action_has_its_time(self) -> Self:
        if self.timeout_action == "delay" and self.timeout_microseconds is None and not self.allow_timeout_override:
            way_out = "set timeoutMicroseconds or allowTimeoutOverride, or drop timeoutAction"
            refuse([Fault(("timeoutAction",), "needs a time-out, and there is none", way_out)])
        return self

    @property
    def delays(self) -> bool:
        """Whether requests that waited too long are moved behind the others."""
        return self.timeout_microseconds is not None and self.timeout_action == "delay"


class LevelQueueSpec(QueuePolicySpec):
    """The queue of one priority level."""

    level: Annotated[int, Field(ge=1, le=100, description="Priority level, 1 is the highest.")]


def _by_level(queues: tuple[LevelQueueSpec, ...]) -> tuple[LevelQueueSpec, ...]:
    """The message is a map, which has no order of its own."""
    return tuple(sorted(queues, key=lambda queue: queue.level))


class PrioritiesSpec(Spec):
    """Several queues before one model: while a request of a higher level waits, none of a lower level is begun."""

    levels: Annotated[int, Field(ge=1, le=100, description="Number of levels; 1 is the highest.")]
    default: Annotated[int, Field(ge=1, le=100, description="Level of requests that name none.")] = 1
    queues: Annotated[
        tuple[LevelQueueSpec, ...],
        AfterValidator(_by_level),
        Field(strict=False, description="Queues of single levels; the others have batching.queue."),
    ] = ()

    @model_validator(mode="after")
    def _levels_are_there(self) -> Self:
        refuse(list(self._faults()))
        return self

    def _faults(self) -> Iterator[Fault]:
        there = f"there are {self.levels}, from 1 (the highest) to {self.levels}"
        if self.default > self.levels:
            yield Fault(("default",), f"level {self.default} does not exist: {there}", f"set default to at most {self.levels}, or raise levels")
        named = [queue.level for queue in self.queues]
        for level in named:
            if level > self.levels:
                yield Fault(("queues",), f"level {level} does not exist: {there}", "correct level, or raise levels")
        if len(set(named)) != len(named):
            yield Fault(("queues",), f"levels {named}: a level has one queue", "join the entries of one level")


class BatchingSpec(Spec):
    """How the server joins requests; with `maxBatchSize` 0 there is no batch axis, no batcher, and nothing to set on it."""

    max_batch_size: Annotated[int, Field(ge=0, le=MAX_BATCH_SIZE, description="Largest batch; 0: tensors are passed as they come.")] = 0
    dynamic: Annotated[bool, Field(description="Whether requests are joined; false: each is run alone, with at most maxBatchSize rows.")] = True
    preferred_sizes: PreferredSizes = ()
    max_queue_delay_microseconds: QueueDelay = 0
    preserve_ordering: Annotated[bool, Field(description="Whether answers leave in the order of their requests.")] = False
    queue: Annotated[QueuePolicySpec, Field(description="Queue of every level that has none of its own.")] = QueuePolicySpec()
    priorities: Annotated[PrioritiesSpec | None, Field(description="Priority levels; absent: first come, first served.")] = None

    @model_validator(mode="after")
    def _settings_fit_together(self) -> Self:
        refuse(list(self._batcher_faults()) or [*self._size_faults(), *self._ordering_faults(), *self._time_faults()])
        return self

    @property
    def has_batcher(self) -> bool:
        return self.max_batch_size > 0 and self.dynamic

    @property
    def fetches_ahead(self) -> bool:
        """Whether the batcher makes a batch ready while all copies are busy: neither with priorities nor with a queue policy.

        triton-inference-server/core src/scheduler_utils.cc, PriorityQueue, `support_prefetching_`.
        """
        return self.has_batcher and self.priorities is None and self.queue == QueuePolicySpec()

    @property
    def batcher_settings(self) -> tuple[str, ...]:
        """Keys that were set and mean something to the batcher alone."""
        defaults = BatchingSpec.model_construct()
        names = ("preferred_sizes", "max_queue_delay_microseconds", "preserve_ordering", "queue", "priorities")
        return tuple(BatchingSpec.model_fields[name].alias or name for name in names if getattr(self, name) != getattr(defaults, name))

    @property
    def policies(self) -> tuple[tuple[tuple[str, ...], QueuePolicySpec], ...]:
        """Every queue with the key that holds it."""
        levels = self.priorities.queues if self.priorities else ()
        return ((("queue",), self.queue), *((("priorities", "queues"), queue) for queue in levels))

    def _batcher_faults(self) -> Iterator[Fault]:
        """All of them live in Triton's batcher (triton-inference-server/server#6368)."""
        if self.has_batcher:
            return
        reason, way_out = "is a setting of the batcher, and maxBatchSize 0 means that there is none", "set maxBatchSize, or drop"
        if self.max_batch_size > 0:
            reason, way_out = "is a setting of the batcher, and dynamic: false means that there is none", "drop dynamic, or drop"
        elif not self.dynamic:
            yield Fault(("dynamic",), "says how batches are made, and maxBatchSize 0 means that there are none", "set maxBatchSize, or drop dynamic")
        for key in self.batcher_settings:
            yield Fault((key,), reason, f"{way_out} {key}")

    def _size_faults(self) -> Iterator[Fault]:
        yield from preferred_size_faults(self.preferred_sizes, self.max_batch_size)

    def _ordering_faults(self) -> Iterator[Fault]:
        if not self.preserve_ordering:
            return
        if self.priorities and self.priorities.levels > 1:
            yield Fault(("preserveOrdering",), "contradicts priorities: a request of a higher level overtakes", "drop one of them")
        if any(policy.delays for _, policy in self.policies):
            yield Fault(("preserveOrdering",), "contradicts timeoutAction delay, which serves a request after later ones", "drop one of them")

    def _time_faults(self) -> Iterator[Fault]:
        for keys, policy in self.policies:
            if policy.timeout_microseconds is not None and policy.timeout_microseconds <= self.max_queue_delay_microseconds:
                reason = (
                    f"timeoutMicroseconds {policy.timeout_microseconds} is not above maxQueueDelayMicroseconds {self.max_queue_delay_microseconds}: "
                    "requests would time out while they wait for a batch to fill"
                )
                yield Fault(keys, reason, f"set it above {self.max_queue_delay_microseconds}, or lower maxQueueDelayMicroseconds")


def preferred_size_faults(sizes: tuple[int, ...], max_batch_size: int) -> Iterator[Fault]:
    """Faults of `preferredSizes` under the largest batch there is."""
    if list(sizes) != sorted(set(sizes)):
        yield Fault(("preferredSizes",), f"{list(sizes)} must ascend without repetition", f"write {sorted(set(sizes))}")
    elif sizes and sizes[-1] > max_batch_size:
        reason = f"{sizes[-1]} is above maxBatchSize {max_batch_size} and can never be reached"
        yield Fault(("preferredSizes",), reason, f"lower it, or set batching.maxBatchSize to at least {sizes[-1]}")


# What `batching: throughput` stands for.
THROUGHPUT = BatchingSpec(max_batch_size=32, preferred_sizes=(4, 8, 16), max_queue_delay_microseconds=50_000)


def _by_profile(value: object) -> object:
    if isinstance(value, str) and value != "throughput":
        raise ValueError(f"{value!r} is no profile: write throughput, or the keys of batching")
    return THROUGHPUT if value == "throughput" else value


Batching = Annotated[
    BatchingSpec,
    BeforeValidator(_by_profile, json_schema_input_type=Literal["throughput"] | BatchingSpec),
    Field(description="How requests are joined. `throughput`: maxBatchSize 32, preferredSizes 4, 8 and 16, maxQueueDelayMicroseconds 50000."),
]
