"""What the gateway is told of the models behind it. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from components.traffic.front_routes import front_route_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stacks.config import StackConfig


def longest_request_seconds(config: StackConfig) -> int:
    """The longest time that a route gives a request, in whole seconds; batches of a front, which have no limit, are left out.

    A server's own maxRequestSeconds says less: what waits at the gateway for a free connection waits within the route's time.
    """
    return math.ceil(max(_route_seconds(config)))


def _route_seconds(config: StackConfig) -> Iterator[float]:
    for model in config.models.values():
        yield model.routing.timeout_seconds
        if model.front is not None:
            yield front_route_seconds(model.front.timeout_seconds)
