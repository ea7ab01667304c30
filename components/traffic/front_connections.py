"""How proxies connect to the HTTP front of a model."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.base import PlatformComponent
from components.core.model_identity import ModelIdentity
from components.objects import custom_resource
from components.traffic.istio_manifest import build_front_rule
from components.traffic.spec import RoutingSpec


@dataclass(frozen=True, kw_only=True)
class FrontConnectionsArgs:
    """`after` is made first: what must be there before Istio admits its objects."""

    identity: ModelIdentity
    routing: RoutingSpec
    after: Sequence[pulumi.Resource]


class FrontConnections(PlatformComponent):
    """Makes the DestinationRule of the front: balance, connections, ejection of pods that cannot be reached, as for the model's servers."""

    AREA = "traffic"

    def __init__(self, name: str, args: FrontConnectionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        custom_resource(f"{name}-rule", build_front_rule(args.identity, args.routing), self.child_opts(depends_on=list(args.after)))
        self.register_outputs({})
