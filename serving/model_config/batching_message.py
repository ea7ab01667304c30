"""Dynamic batching as Triton's message, and back."""

from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from serving.model_config.batching import BatchingSpec, QueuePolicySpec


def dynamic_batching(batching: BatchingSpec) -> pb.ModelDynamicBatching:
    message = pb.ModelDynamicBatching(
        preferred_batch_size=batching.preferred_sizes,
        max_queue_delay_microseconds=batching.max_queue_delay_microseconds,
        preserve_ordering=batching.preserve_ordering,
        default_queue_policy=_queue_policy(batching.queue) if batching.queue != QueuePolicySpec() else None,
    )
    if batching.priorities is not None:
        message.priority_levels = batching.priorities.levels
        message.default_priority_level = batching.priorities.default
        for queue in batching.priorities.queues:
            message.priority_queue_policy[queue.level].CopyFrom(_queue_policy(queue))
    return message


def batching_values(config: pb.ModelConfig) -> dict[str, Any]:
    """Values of a BatchingSpec, as the stack file spells them."""
    values: dict[str, Any] = {"maxBatchSize": config.max_batch_size}
    if not config.HasField("dynamic_batching"):
        scheduled_otherwise = config.WhichOneof("scheduling_choice") is not None
        return values if config.max_batch_size == 0 or scheduled_otherwise else {**values, "dynamic": False}
    if config.max_batch_size == 0:
        # No Spec can say it, and it means nothing: the caller finds that it is lost.
        return values
    message = config.dynamic_batching
    values |= {
        "preferredSizes": list(message.preferred_batch_size),
        "maxQueueDelayMicroseconds": message.max_queue_delay_microseconds,
        "preserveOrdering": message.preserve_ordering,
        "queue": _queue_values(message.default_queue_policy),
    }
    if message.priority_levels:
        levels = [{"level": level, **_queue_values(policy)} for level, policy in sorted(message.priority_queue_policy.items())]
        values["priorities"] = {"levels": message.priority_levels, "default": message.default_priority_level, "queues": levels}
    return values


def _queue_policy(queue: QueuePolicySpec) -> pb.ModelQueuePolicy:
    return pb.ModelQueuePolicy(
        max_queue_size=queue.max_size or 0,
        default_timeout_microseconds=queue.timeout_microseconds or 0,
        timeout_action=pb.ModelQueuePolicy.TimeoutAction.Value(queue.timeout_action.upper()),
        allow_timeout_override=queue.allow_timeout_override,
    )


def _queue_values(policy: pb.ModelQueuePolicy) -> dict[str, Any]:
    return {
        "maxSize": policy.max_queue_size or None,
        "timeoutMicroseconds": policy.default_timeout_microseconds or None,
        "timeoutAction": pb.ModelQueuePolicy.TimeoutAction.Name(policy.timeout_action).lower(),
        "allowTimeoutOverride": policy.allow_timeout_override,
    }
