"""The weighted route to the versions of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from components.base import PlatformComponent
from components.objects import custom_resource
from components.traffic.istio_manifest import Route, build_virtual_service


@dataclass(frozen=True, kw_only=True)
class CanaryRouteArgs:
    """`after` is made first: the versions' subsets, their ready pods, the gateway. No weight moves to a version that cannot answer."""

    route: Route
    after: Sequence[pulumi.Resource]


class CanaryRoute(PlatformComponent):
    """Makes the VirtualService, the one object that a change of weights touches.

    Outputs: `host`, the name callers use; `weights`, percent per subset. Raises ManifestError for a host that the gateway does not serve.
    """

    AREA = "traffic"

    host: pulumi.Output[str]
    weights: pulumi.Output[Mapping[str, int]]

    def __init__(self, name: str, args: CanaryRouteArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        manifest = build_virtual_service(args.route)
        super().__init__(name, opts)
        custom_resource(f"{name}-virtual-service", manifest, self.child_opts(depends_on=list(args.after)))
        self.host = pulumi.Output.from_input(str(manifest["spec"]["hosts"][0]))
        self.weights = pulumi.Output.from_input(args.route.weights)
        self.register_outputs({"host": self.host, "weights": self.weights})
