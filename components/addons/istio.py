"""Istio's control plane."""

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from components.addons import istio_values as values
from components.addons.spec import IstioSpec
from components.base import PlatformComponent
from components.core.chart import ChartRef
from components.objects import helm_chart


@dataclass(frozen=True, kw_only=True)
class IstioAddonArgs:
    """`images` are the locally built ones; absent, the charts' own are used."""

    spec: IstioSpec
    base_chart: ChartRef
    istiod_chart: ChartRef
    images: values.IstioImages | None = None


class IstioAddon(PlatformComponent):
    """Makes the namespace, Istio's custom resource definitions and the control plane.

    `control_plane` is for `depends_on`: what it stands for is ready, so Istio's objects are understood and admitted. Output: `namespace`.
    """

    AREA = "addons"

    control_plane: pulumi.Resource
    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: IstioAddonArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        namespace = k8s.core.v1.Namespace(f"{name}-namespace", metadata=values.build_namespace(), opts=self.child)
        base = helm_chart("istio-base", args.base_chart, values.NAMESPACE, values.build_base_values(), self.child_opts(depends_on=[namespace]))
        istiod = values.build_istiod_values(args.spec, args.images)
        self.control_plane = helm_chart("istiod", args.istiod_chart, values.NAMESPACE, istiod, self.child_opts(depends_on=[base]))
        self.namespace = pulumi.Output.from_input(values.NAMESPACE)
        self.register_outputs({"namespace": self.namespace})
