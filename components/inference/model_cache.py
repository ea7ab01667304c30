"""ModelCache: a folder of each node that keeps fetched model files."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apps.v1 import DaemonSet
from pulumi_kubernetes.core.v1 import PersistentVolume, PersistentVolumeClaim

from components.base import PlatformComponent
from components.core.model_repository import NodeCache
from components.core.node_pool import GpuNodePoolSpec
from components.inference.model_cache_manifest import AWAIT_TIMEOUT_SECONDS, build_cache_claim, build_cache_daemon, build_cache_volume


@dataclass(frozen=True, kw_only=True)
class ModelCacheArgs:
    """The cache, the namespace of the models, the image of the apps, and the pool whose nodes have it; None: nodes in none of `other_pools`."""

    cache: NodeCache
    namespace: str
    apps_image: pulumi.Input[str]
    pool: GpuNodePoolSpec | None = None
    other_pools: Sequence[GpuNodePoolSpec] = ()


class ModelCache(PlatformComponent):
    """Makes PersistentVolume and PersistentVolumeClaim, and the DaemonSet in kube-system that gives the folder to the models' user.

    Output: `claim`, the claim's name, known once it is bound.
    """

    AREA = "inference"

    claim: pulumi.Output[str]

    def __init__(self, name: str, args: ModelCacheArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        volume = PersistentVolume(f"{name}-volume", **build_cache_volume(args.cache, args.namespace), opts=self.child)
        claim = PersistentVolumeClaim(f"{name}-claim", **build_cache_claim(args.cache, args.namespace), opts=self.child_opts(depends_on=[volume]))
        timeout = f"{AWAIT_TIMEOUT_SECONDS}s"
        DaemonSet(
            f"{name}-folder",
            **build_cache_daemon(args.cache, args.namespace, args.pool, args.apps_image, args.other_pools),
            opts=self.child_opts(custom_timeouts=pulumi.CustomTimeouts(create=timeout, update=timeout)),
        )
        self.claim = claim.id.apply(lambda _: args.cache.claim)
        self.register_outputs({"claim": self.claim})
