"""ModelFront: the HTTP front of one model."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap, Service, ServiceAccount
from pulumi_kubernetes.policy.v1 import PodDisruptionBudget

from components.base import PlatformComponent
from components.core.model_identity import ModelIdentity
from components.front import front_manifest as manifest
from components.front.spec import FrontSpec


@dataclass(frozen=True, kw_only=True)
class ModelFrontArgs:
    """`settings` is the text its process reads; `after` is made first: the model's route, since a front is ready when the model answers through it."""

    identity: ModelIdentity
    spec: FrontSpec
    settings: str
    image: pulumi.Input[str]
    after: Sequence[pulumi.Resource]


class ModelFront(PlatformComponent):
    """Makes ServiceAccount, ConfigMap, Deployment, PodDisruptionBudget and Service of the front.

    Output: `host`, the Service's full name, known once a pod is ready.
    """

    AREA = "front"

    host: pulumi.Output[str]

    def __init__(self, name: str, args: ModelFrontArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        plan = manifest.FrontPlan(identity=args.identity, spec=args.spec, settings=args.settings)
        body = manifest.build_service_account(plan)
        account = ServiceAccount(
            f"{name}-account",
            metadata=body["metadata"],
            automount_service_account_token=body["automountServiceAccountToken"],
            opts=self.child_opts(depends_on=list(args.after)),
        )
        config = ConfigMap(f"{name}-config", **manifest.build_config_map(plan), opts=self.child_opts(depends_on=list(args.after)))
        PodDisruptionBudget(f"{name}-budget", **manifest.build_disruption_budget(plan), opts=self.child_opts(depends_on=list(args.after)))
        deployment = Deployment(
            f"{name}-deployment", **manifest.build_deployment(plan, args.image), opts=self.child_opts(depends_on=[account, config])
        )
        service = Service(f"{name}-service", **manifest.build_service(plan), opts=self.child_opts(depends_on=[deployment]))
        self.host = service.metadata["name"].apply(lambda _: args.identity.front_host)
        self.register_outputs({"host": self.host})
