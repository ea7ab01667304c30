"""Instance groups and their rate limiter as Triton's messages, and back."""

from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from serving.model_config.instances import InstancesSpec, RateLimiterSpec

Kind = pb.ModelInstanceGroup.Kind


def instance_groups(instances: InstancesSpec, limiter: RateLimiterSpec | None, cpu_cores: float) -> list[pb.ModelInstanceGroup]:
    """One message per group; each carries the limiter, because Triton has it per group."""
    return [
        pb.ModelInstanceGroup(
            count=group.copies(cpu_cores),
            kind=Kind.Value(f"KIND_{group.kind.upper()}"),
            gpus=group.gpus,
            profile=[str(profile) for profile in group.profiles],
            rate_limiter=_rate_limiter(limiter) if limiter is not None else None,
        )
        for group in instances.groups
    ]


def instances_values(config: pb.ModelConfig) -> dict[str, Any]:
    """Values of an InstancesSpec, as the stack file spells them; a kind that is neither cpu nor gpu is left to the default."""
    groups = [_group_values(group) for group in config.instance_group]
    return {**groups[0], "further": groups[1:]} if groups else {}


def rate_limiter_values(config: pb.ModelConfig) -> dict[str, Any] | None:
    """Values of the first group's RateLimiterSpec; None where it has none."""
    limiters = [group.rate_limiter for group in config.instance_group if group.HasField("rate_limiter")]
    if not limiters:
        return None
    resources = [
        {"name": resource.name, "count": resource.count, "scope": "global" if getattr(resource, "global") else "device"}
        for resource in limiters[0].resources
    ]
    return {"priority": limiters[0].priority, "resources": resources}


def _rate_limiter(limiter: RateLimiterSpec) -> pb.ModelRateLimiter:
    # `global` is a word of Python, so it cannot be written as a keyword argument.
    resources = [
        pb.ModelRateLimiter.Resource(**{"name": resource.name, "count": resource.count, "global": resource.scope == "global"})
        for resource in limiter.resources
    ]
    return pb.ModelRateLimiter(resources=resources, priority=limiter.priority)


def _group_values(group: pb.ModelInstanceGroup) -> dict[str, Any]:
    return {
        "count": group.count or None,
        "kind": "gpu" if group.kind == Kind.Value("KIND_GPU") else "cpu",
        "gpus": list(group.gpus),
        "profiles": [int(profile) for profile in group.profile if profile.isdecimal()],
    }
