"""The versions of a model as subsets of its Service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from components.base import PlatformComponent
from components.core.model_identity import ModelIdentity
from components.objects import custom_resource
from components.traffic.istio_manifest import build_destination_rule
from components.traffic.spec import RoutingSpec


@dataclass(frozen=True, kw_only=True)
class VersionSubsetsArgs:
    """`after` is made first: what must be there before Istio admits its objects."""

    identity: ModelIdentity
    versions: Sequence[int]
    routing: RoutingSpec
    gateway_replicas: int
    after: Sequence[pulumi.Resource]


class VersionSubsets(PlatformComponent):
    """Makes one DestinationRule fragment per version.

    `fragments` are for `depends_on`, of the route and of each version's Deployment. Of the Deployment for the way back: Pulumi deletes what
    depends on an object before the object, so a version that leaves keeps its fragment while its pods drain (seconds). Deleted together with
    the last change of the route, the fragment could leave a proxy first, which then has a route to a cluster it no longer knows: 503.
    """

    AREA = "traffic"

    fragments: Mapping[int, CustomResource]

    def __init__(self, name: str, args: VersionSubsetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        connections = args.routing.requests.connections(args.gateway_replicas)
        super().__init__(name, opts)
        child = self.child_opts(depends_on=list(args.after))
        self.fragments = {
            version: custom_resource(f"{name}-v{version}", build_destination_rule(args.identity, version, args.routing, connections), child)
            for version in args.versions
        }
        self.register_outputs({})
