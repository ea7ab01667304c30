"""Public names of the library: every component with its Args, and the errors.

They are imported when they are first used, so that `components.core` and the specs can be imported without Pulumi.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.addons.istio import IstioAddon, IstioAddonArgs
    from components.batch.batch_job import BatchJob, BatchJobArgs
    from components.devices.simulated_gpus import SimulatedGpus, SimulatedGpusArgs
    from components.errors import AssetError, ConfigError, ManifestError, PlatformError
    from components.front.model_front import ModelFront, ModelFrontArgs
    from components.inference.model_cache import ModelCache, ModelCacheArgs
    from components.inference.namespace import ModelsNamespace, ModelsNamespaceArgs
    from components.inference.triton import TritonServer, TritonServerArgs, VersionArgs
    from components.traffic.canary_route import CanaryRoute, CanaryRouteArgs
    from components.traffic.front_connections import FrontConnections, FrontConnectionsArgs
    from components.traffic.gateway import IngressGateway, IngressGatewayArgs
    from components.traffic.version_subsets import VersionSubsets, VersionSubsetsArgs

__all__ = [
    "AssetError",
    "BatchJob",
    "BatchJobArgs",
    "CanaryRoute",
    "CanaryRouteArgs",
    "ConfigError",
    "FrontConnections",
    "FrontConnectionsArgs",
    "IngressGateway",
    "IngressGatewayArgs",
    "IstioAddon",
    "IstioAddonArgs",
    "ManifestError",
    "ModelCache",
    "ModelCacheArgs",
    "ModelFront",
    "ModelFrontArgs",
    "ModelsNamespace",
    "ModelsNamespaceArgs",
    "PlatformError",
    "SimulatedGpus",
    "SimulatedGpusArgs",
    "TritonServer",
    "TritonServerArgs",
    "VersionArgs",
    "VersionSubsets",
    "VersionSubsetsArgs",
]

_HOMES = {
    "components.addons.istio": ("IstioAddon", "IstioAddonArgs"),
    "components.batch.batch_job": ("BatchJob", "BatchJobArgs"),
    "components.devices.simulated_gpus": ("SimulatedGpus", "SimulatedGpusArgs"),
    "components.errors": ("AssetError", "ConfigError", "ManifestError", "PlatformError"),
    "components.inference.model_cache": ("ModelCache", "ModelCacheArgs"),
    "components.front.model_front": ("ModelFront", "ModelFrontArgs"),
    "components.inference.namespace": ("ModelsNamespace", "ModelsNamespaceArgs"),
    "components.inference.triton": ("TritonServer", "TritonServerArgs", "VersionArgs"),
    "components.traffic.canary_route": ("CanaryRoute", "CanaryRouteArgs"),
    "components.traffic.front_connections": ("FrontConnections", "FrontConnectionsArgs"),
    "components.traffic.gateway": ("IngressGateway", "IngressGatewayArgs"),
    "components.traffic.version_subsets": ("VersionSubsets", "VersionSubsetsArgs"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
