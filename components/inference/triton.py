"""TritonServer: the servers of one model, one Deployment per version."""

from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap, Service, ServiceAccount
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget

from components.base import PlatformComponent
from components.core.model_identity import ModelIdentity
from components.core.requests import DEFAULT_LIMITS, RequestLimits
from components.inference.placement import PoolUse
from components.inference.plan import VersionPlan, plan_versions
from components.inference.repository_manifest import IN_IMAGE, RepositoryUse
from components.inference.spec import ModelVersion, ServerSpec
from components.inference.triton_manifest import (
    build_config_map,
    build_deployment,
    build_disruption_budget,
    build_service,
    build_service_account,
)


@dataclass(frozen=True, kw_only=True)
class VersionArgs(ModelVersion):
    """A version, the images of its pods, and what its Deployment must not outlive: made before it, deleted after it.

    `apps_image` runs the init step of a repository that is not in the image.
    """

    image: pulumi.Input[str]
    apps_image: pulumi.Input[str] | None = None
    after: tuple[pulumi.Resource, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TritonServerArgs:
    """A model, how it is served, where, and where its files come from; `pool` is needed when the server takes GPUs."""

    identity: ModelIdentity
    server: ServerSpec
    versions: tuple[VersionArgs, ...]
    pool: PoolUse | None = None
    repository: RepositoryUse = IN_IMAGE
    requests: RequestLimits = DEFAULT_LIMITS


class TritonServer(PlatformComponent):
    """Makes ServiceAccount and Service of a model and, per version, ConfigMap, Deployment and PodDisruptionBudget.

    Raises ManifestError, before anything is made, when version, server and pool do not fit together.
    """

    AREA = "inference"

    service_name: pulumi.Output[str]
    host: pulumi.Output[str]
    deployment_names: pulumi.Output[list[str]]

    def __init__(self, name: str, args: TritonServerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        plans = plan_versions(args.identity, args.server, args.pool, args.versions, args.repository, args.requests)
        super().__init__(name, opts)
        manifest = build_service_account(args.identity, args.repository.account_annotations)
        account = ServiceAccount(
            f"{name}-account",
            metadata=manifest["metadata"],
            automount_service_account_token=manifest["automountServiceAccountToken"],
            opts=self.child,
        )
        deployments = [self._serve(name, plan, version, account) for plan, version in zip(plans, args.versions, strict=True)]
        # Pulumi waits until the Service has a ready endpoint, which takes as long as the fastest version.
        service = Service(
            f"{name}-service",
            **build_service(args.identity, awaited=any(plan.awaits_ready for plan in plans)),
            opts=self.child_opts(custom_timeouts=_timeouts(max(plan.await_timeout for plan in plans))),
        )
        self.service_name = _name_of(service)
        self.host = self.service_name.apply(lambda _: args.identity.host)
        self.deployment_names = pulumi.Output.all(*(_name_of(deployment) for deployment in deployments))
        self.register_outputs({"serviceName": self.service_name, "host": self.host, "deploymentNames": self.deployment_names})

    def _serve(self, name: str, plan: VersionPlan, version: VersionArgs, account: ServiceAccount) -> Deployment:
        role = f"{name}-v{plan.version}"
        for warning in plan.warnings:
            pulumi.log.warn(f"{plan.deployment}: {warning}", self)
        manifest = build_config_map(plan)
        config = ConfigMap(
            f"{role}-config",
            metadata=manifest["metadata"],
            data=manifest["data"],
            binary_data=manifest.get("binaryData"),
            immutable=manifest["immutable"],
            opts=self.child,
        )
        PodDisruptionBudget(f"{role}-budget", **build_disruption_budget(plan), opts=self.child)
        return Deployment(
            f"{role}-deployment",
            **build_deployment(plan, version.image, version.apps_image),
            # Explicit, because the manifest names both by plain text.
            opts=self.child_opts(depends_on=[account, config, *version.after], custom_timeouts=_timeouts(plan.await_timeout)),
        )


def _timeouts(seconds: int) -> pulumi.CustomTimeouts:
    return pulumi.CustomTimeouts(create=f"{seconds}s", update=f"{seconds}s")


def _name_of(resource: Any) -> pulumi.Output[str]:
    """Resolves once the object is there and, where it is awaited, ready."""
    name: pulumi.Output[str] = resource.metadata["name"]
    return name
