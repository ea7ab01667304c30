"""Routes to the HTTP front of a model, at the model's own host."""

from typing import Any

from components.core.model_identity import ModelIdentity
from components.traffic.durations import duration
from serving.contract import FRONT_PORT

# The front answers 408 and 504 itself; it gets the time to say so.
MARGIN_SECONDS = 5
# Health and metrics stay inside.
ONE_FILE = ("/predict", "/docs", "/openapi.json")


def front_route_seconds(timeout_seconds: float) -> float:
    """What the route gives a request that the front itself gives `timeout_seconds`."""
    return timeout_seconds + MARGIN_SECONDS


def build_front_routes(identity: ModelIdentity, timeout_seconds: float, retries: dict[str, Any]) -> list[dict[str, Any]]:
    """What of a model's host is the front's, before anything that guards Triton: a form is a file here, and JSON is never read as JSON by a server."""
    model = f"/v1/models/{identity.triton_name}"
    one = [{"uri": {"exact": path}} for path in (*ONE_FILE, f"{model}/predict")]
    many = [{"uri": {"exact": f"{model}/batch"}}]
    destination = {"destination": {"host": identity.front_host, "port": {"number": FRONT_PORT}}, "weight": 100}
    return [
        {"name": "front", "match": one, "route": [destination], "timeout": duration(front_route_seconds(timeout_seconds)), "retries": retries},
        # No limit: a batch goes on as long as its sender sends. Istio refuses to have that spelled out as 0s.
        {"name": "front-batch", "match": many, "route": [destination], "retries": retries},
    ]
