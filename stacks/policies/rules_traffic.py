"""Rules about traffic: what every VirtualService must say outright, because what it leaves out Istio fills in.

A destination without weight beside others broke whole listeners (istio/api#586); a route without a retry block is retried by default, also
where the request is an inference that must run once (istio/istio#13851).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulumi_policy import ReportViolation, ResourceValidationArgs, ResourceValidationPolicy

VIRTUAL_SERVICE = "VirtualService"
ISTIO_GROUP = "networking.istio.io/"
TOTAL_PERCENT = 100
# Routes that answer by themselves send nothing to a destination.
WITHOUT_DESTINATION = ("redirect", "directResponse", "delegate")


def is_virtual_service(resource_type: str) -> bool:
    """Whether a Pulumi type token (`kubernetes:networking.istio.io/v1:VirtualService`) is Istio's VirtualService, of any version."""
    _, _, tail = resource_type.partition(":")
    api, _, kind = tail.rpartition(":")
    return kind == VIRTUAL_SERVICE and api.startswith(ISTIO_GROUP)


def virtual_service_violations(spec: Mapping[str, Any]) -> Iterator[str]:
    """One sentence per HTTP route that leaves weights or retries to a default."""
    for position, route in enumerate(spec.get("http") or ()):
        if any(key in route for key in WITHOUT_DESTINATION):
            continue
        where = f"spec.http[{position}]" + (f" ({route['name']})" if "name" in route else "")
        yield from (f"{where}: {fault}" for fault in (*_weight_faults(route.get("route") or ()), *_retry_faults(route)))


def _weight_faults(destinations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not destinations:
        yield "has no destination"
        return
    missing = [position for position, destination in enumerate(destinations) if "weight" not in destination]
    if missing:
        yield f"destination {missing[0]} has no weight; write it out, 0 included"
        return
    weights = [destination["weight"] for destination in destinations]
    if any(isinstance(weight, bool) or weight != int(weight) or weight < 0 for weight in weights):
        yield f"weights {weights} are not all whole numbers from 0"
    elif sum(weights) != TOTAL_PERCENT:
        yield f"weights {weights} sum to {sum(weights):g}, not {TOTAL_PERCENT}"


def _retry_faults(route: Mapping[str, Any]) -> Iterator[str]:
    retries = route.get("retries")
    if not isinstance(retries, Mapping) or "attempts" not in retries:
        yield "has no retry block with attempts; without one Istio retries by default: write retries.attempts: 0"


def _validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
    if is_virtual_service(args.resource_type):
        for violation in virtual_service_violations(args.props.get("spec") or {}):
            report_violation(violation, None)


POLICIES = (
    ResourceValidationPolicy(
        name="virtual-service-says-weights-and-retries",
        description="Every HTTP route of a VirtualService has explicit weights that sum to 100 and an explicit retry block.",
        validate=_validate,
    ),
)
