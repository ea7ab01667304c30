"""The tiny base of every component: type token and children's options."""

import pulumi

from components.naming import type_token


class PlatformComponent(pulumi.ComponentResource):
    """Registers under `inference:<area>:<Class>`; `self.child` are the options every child is made with.

    Children get `parent=self` and nothing of the caller's options: providers, protection and aliases come down by parenthood.
    """

    AREA: str

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(type_token(self.AREA, type(self).__name__), name, None, opts)
        self.child = pulumi.ResourceOptions(parent=self)

    def child_opts(self, **extra: object) -> pulumi.ResourceOptions:
        """Options of one child that needs more than the parent, e.g. `depends_on` or `custom_timeouts`."""
        return pulumi.ResourceOptions.merge(self.child, pulumi.ResourceOptions(**extra))  # type: ignore[arg-type]
