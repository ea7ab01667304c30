"""Rules between a model's front and the rest of the stack file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.core.faults import Fault
from components.errors import PlatformError
from serving.front.settings import NO_FILES_HINT
from serving.model_config import model_names
from serving.tensors import file_input
from stacks.models import manifest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stacks.config import ModelSpec


def front_faults(name: str, model: ModelSpec) -> Iterator[Fault]:
    """The model takes files, and the front gives up before the route behind it does."""
    if model.front is None:
        return
    at: tuple[str, ...] = ("models", name, "front")
    if (model.triton_name or name) in model_names():
        try:
            file_input(manifest_of(name, model).signature.inputs, NO_FILES_HINT)
        except PlatformError as error:
            yield Fault(at, error.message, error.hint)
    front, route = model.front.timeout_seconds, model.routing.timeout_seconds
    if front > route:
        reason = f"is above routing.timeoutSeconds {route:g}, the time limit of the front's own requests to the model"
        yield Fault((*at, "timeoutSeconds"), reason, f"lower it to at most {route:g}, or raise routing.timeoutSeconds")
    if model.front.max_request_mib > model.routing.max_request_mib:
        limit = model.routing.max_request_mib
        reason = f"is above routing.maxRequestMib {limit}: the gateway would refuse the front's own requests to the model"
        yield Fault((*at, "maxRequestMib"), reason, f"lower it to at most {limit}, or raise routing.maxRequestMib")
