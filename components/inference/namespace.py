"""The namespace of the models."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import Namespace, ServiceAccount
from pulumi_kubernetes.networking.v1 import NetworkPolicy

from components.base import PlatformComponent
from components.inference.namespace_manifest import build_default_account, build_namespace
from components.inference.network_manifest import GatewayPods, RoleUser, StoreUser, build_network_policies
from components.inference.network_spec import NetworkSpec

NO_EXCEPTIONS = NetworkSpec()


@dataclass(frozen=True, kw_only=True)
class ModelsNamespaceArgs:
    """What the namespace is called, and who may talk to whom in it."""

    namespace: str
    gateway: GatewayPods
    network: NetworkSpec = NO_EXCEPTIONS
    stores: Sequence[StoreUser] = ()
    roles: Sequence[RoleUser] = ()


class ModelsNamespace(PlatformComponent):
    """Makes the namespace, closes its network, and takes the token from its default account, which Kubernetes makes itself: server-side apply adds
    the one field.

    Output: `name`, known once the namespace is there.
    """

    AREA = "inference"

    name: pulumi.Output[str]

    def __init__(self, name: str, args: ModelsNamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        made = Namespace(f"{name}-namespace", metadata=build_namespace(args.namespace), opts=self.child)
        account = build_default_account(args.namespace)
        ServiceAccount(
            f"{name}-default-account",
            metadata=account["metadata"],
            automount_service_account_token=account["automountServiceAccountToken"],
            # It goes with its namespace; deleted by itself, Kubernetes would make it anew at once, and Pulumi wait in vain for it to be gone.
            opts=self.child_opts(depends_on=[made], retain_on_delete=True),
        )
        for policy in build_network_policies(args.namespace, args.gateway, args.network, args.stores, args.roles):
            # Before any pod, which waits for this component.
            role = policy["metadata"]["name"]
            NetworkPolicy(f"{name}-network-{role}", metadata=policy["metadata"], spec=policy["spec"], opts=self.child_opts(depends_on=[made]))
        self.name = made.id.apply(lambda _: args.namespace)
        self.register_outputs({"name": self.name})
