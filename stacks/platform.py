"""The composition root: joins the components of one stack. No decisions here that a component or a rule could take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components.addons.charts import chart_ref
from components.addons.istio import IstioAddon, IstioAddonArgs
from components.addons.istio_values import IstioImages
from components.batch.batch_job import BatchJob, BatchJobArgs
from components.core.chart import ChartRef
from components.devices.simulated_gpus import SimulatedGpus, SimulatedGpusArgs
from components.front.model_front import ModelFront, ModelFrontArgs
from components.inference.model_cache import ModelCache, ModelCacheArgs
from components.inference.namespace import ModelsNamespace
from components.inference.triton import TritonServer, TritonServerArgs, VersionArgs
from components.traffic.canary_route import CanaryRoute, CanaryRouteArgs
from components.traffic.front_connections import FrontConnections, FrontConnectionsArgs
from components.traffic.gateway import IngressGateway, IngressGatewayArgs
from components.traffic.gateway_manifest import REFERENCE as GATEWAY
from components.traffic.istio_manifest import Route, external_host
from components.traffic.version_subsets import VersionSubsets, VersionSubsetsArgs
from components.traffic.weights import split
from stacks.apps import APPS_IMAGE, apps_users
from stacks.assets import Assets
from stacks.batch import batch_plan
from stacks.config import StackConfig
from stacks.front import front_settings
from stacks.gateway import longest_request_seconds
from stacks.models import node_caches, pool_use, repository_use, served_versions
from stacks.network import namespace_args
from stacks.providers import kubernetes_provider


@dataclass(frozen=True)
class ModelOutputs:
    """Where a model is reached, what runs and who gets which percentage."""

    host: pulumi.Output[str]
    triton_name: str
    versions: Sequence[int]
    weights: pulumi.Output[Mapping[str, int]]
    route: pulumi.Resource

    def exports(self) -> dict[str, Any]:
        """The model's part of the stack outputs."""
        return {"host": self.host, "tritonName": self.triton_name, "versions": list(self.versions), "weights": self.weights}


@dataclass(frozen=True)
class PlatformOutputs:
    """What a person and the tools need to know of a running stack."""

    namespace: str
    gateway_domain: str
    gateway_port: pulumi.Output[int]
    models: Mapping[str, ModelOutputs]

    def exports(self) -> dict[str, Any]:
        """Stack outputs by name."""
        return {
            "namespace": self.namespace,
            "gateway": {"domain": self.gateway_domain, "port": self.gateway_port},
            "models": {name: model.exports() for name, model in self.models.items()},
        }


@dataclass(frozen=True)
class _Base:
    """What every model stands on."""

    istio: IstioAddon
    gateway: IngressGateway
    namespace: ModelsNamespace
    image: str
    apps_image: str | None
    caches: Sequence[pulumi.Resource]


def build(config: StackConfig, assets: Assets) -> PlatformOutputs:
    """Register everything of a stack; AssetError, before anything is registered, for a local chart or image that is not there."""
    istio_args, gateway_chart = _istio_args(config, assets), _gateway_chart(config, assets)
    image = config.images.triton or assets.image("triton")
    apps_image = (config.images.apps or assets.image(APPS_IMAGE)) if any(apps_users(config)) else None
    simulator = (
        None if config.cluster.simulated_gpus is None else SimulatedGpusArgs(spec=config.cluster.simulated_gpus, image=assets.image("gpu-simulator"))
    )

    opts = pulumi.ResourceOptions(providers=[kubernetes_provider(config)])
    istio = IstioAddon("istio", istio_args, opts)
    namespace = ModelsNamespace("models", namespace_args(config), opts)
    base = _Base(
        istio=istio,
        gateway=IngressGateway("gateway", _gateway_args(config, gateway_chart, istio), opts),
        namespace=namespace,
        image=image,
        apps_image=apps_image,
        caches=[] if apps_image is None else _caches(config, apps_image, _after(opts, namespace)),
    )
    if simulator is not None:
        SimulatedGpus("gpus", simulator, opts)
    models = {name: _model(config, name, base, opts) for name in config.models}
    if apps_image is not None:
        _batch_jobs(config, apps_image, models, opts)
    return PlatformOutputs(
        namespace=config.cluster.namespace,
        gateway_domain=config.gateway.domain,
        gateway_port=base.gateway.port,
        models=models,
    )


def _batch_jobs(config: StackConfig, image: str, models: Mapping[str, ModelOutputs], opts: pulumi.ResourceOptions) -> None:
    """After the route of its model: a job that finds no server waits for one, but need not."""
    for name, job in config.batch_jobs.items():
        BatchJob(f"{name}-batch", BatchJobArgs(plan=batch_plan(config, name), image=image, after=[models[job.model].route]), opts)


def _model(config: StackConfig, name: str, base: _Base, opts: pulumi.ResourceOptions) -> ModelOutputs:
    """Subsets, then servers, then the route: a version is known to the proxies and ready before it gets a weight, and loses it before it goes."""
    model = config.models[name]
    identity = model.identity(name, config.cluster.namespace)
    after = [base.namespace, base.istio.control_plane]
    subsets = VersionSubsets(
        f"{name}-subsets",
        VersionSubsetsArgs(identity=identity, versions=model.versions, routing=model.routing, gateway_replicas=config.gateway.replicas, after=after),
        opts,
    )
    versions = tuple(
        VersionArgs(**vars(version), image=base.image, apps_image=base.apps_image, after=(subsets.fragments[version.version], *base.caches))
        for version in served_versions(name, model, config.images.variant)
    )
    arguments = TritonServerArgs(
        identity=identity,
        server=model.server,
        versions=versions,
        pool=pool_use(config, name),
        repository=repository_use(config, name),
        requests=model.routing.requests,
    )
    server = TritonServer(name, arguments, _after(opts, base.namespace))
    route = Route(
        identity=identity,
        domain=config.gateway.domain,
        gateway=GATEWAY,
        weights=split(model.version, model.canary),
        routing=model.routing,
        front_timeout_seconds=None if model.front is None else model.front.timeout_seconds,
    )
    canary = CanaryRoute(f"{name}-route", CanaryRouteArgs(route=route, after=[subsets, server, base.gateway]), opts)
    _front(config, name, base, canary, opts)
    return ModelOutputs(host=canary.host, triton_name=identity.triton_name, versions=model.versions, weights=canary.weights, route=canary)


def _front(config: StackConfig, name: str, base: _Base, route: CanaryRoute, opts: pulumi.ResourceOptions) -> None:
    """After the route: a front is ready when the model answers it through the gateway."""
    model = config.models[name]
    if model.front is None or base.apps_image is None:
        return
    identity = model.identity(name, config.cluster.namespace)
    admitted = [base.namespace, base.istio.control_plane]
    connections = FrontConnectionsArgs(identity=identity, routing=model.routing, after=admitted)
    after = [route, FrontConnections(f"{name}-front-connections", connections, opts)]
    settings = front_settings(config, name, model.front)
    front = ModelFrontArgs(identity=identity, spec=model.front, settings=settings, image=base.apps_image, after=after)
    ModelFront(f"{name}-front", front, opts)


def _caches(config: StackConfig, image: str, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """The folders of the nodes come before the pods that use them."""
    return [
        ModelCache(
            cache.claim,
            ModelCacheArgs(
                cache=cache,
                namespace=config.cluster.namespace,
                apps_image=image,
                pool=None if cache.pool is None else config.node_pools[cache.pool],
                other_pools=[config.node_pools[name] for name in sorted(config.node_pools) if name != cache.pool],
            ),
            opts,
        )
        for cache in node_caches(config)
    ]


def _istio_args(config: StackConfig, assets: Assets) -> IstioAddonArgs:
    spec = config.addons.istio
    local = spec.source.kind == "module"
    return IstioAddonArgs(
        spec=spec,
        base_chart=chart_ref(spec.source, "base", "istio-base", assets.charts),
        istiod_chart=chart_ref(spec.source, "istiod", "istiod", assets.charts),
        images=IstioImages(pilot=assets.image("pilot"), proxyv2=assets.image("proxyv2")) if local else None,
    )


def _gateway_chart(config: StackConfig, assets: Assets) -> ChartRef:
    return chart_ref(config.addons.istio.source, "gateway", "istio-gateway", assets.charts)


def _gateway_args(config: StackConfig, chart: ChartRef, istio: IstioAddon) -> IngressGatewayArgs:
    return IngressGatewayArgs(
        spec=config.gateway,
        chart=chart,
        models_namespace=config.cluster.namespace,
        p99_values_ms=[model.slo.p99_ms for model in config.models.values()],
        longest_request_seconds=longest_request_seconds(config),
        request_limits={
            external_host(model.identity(name, config.cluster.namespace), model.routing, config.gateway.domain): model.routing.requests
            for name, model in config.models.items()
        },
        after=[istio.control_plane],
    )


def _after(opts: pulumi.ResourceOptions, *resources: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(resources)))
