"""The namespace of the models."""

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import Namespace, ServiceAccount

from components.base import PlatformComponent
from components.inference.namespace_manifest import build_default_account, build_namespace


@dataclass(frozen=True, kw_only=True)
class ModelsNamespaceArgs:
    """What the namespace is called."""

    namespace: str


class ModelsNamespace(PlatformComponent):
    """Makes the namespace and takes the token from its default account, which Kubernetes makes itself: server-side apply adds the one field.

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
        self.name = made.id.apply(lambda _: args.namespace)
        self.register_outputs({"name": self.name})
