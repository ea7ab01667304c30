"""The ingress gateway."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

from components.base import PlatformComponent
from components.core.chart import ChartRef
from components.core.requests import RequestLimits
from components.objects import custom_resource, helm_chart
from components.traffic import gateway_manifest as manifest
from components.traffic.request_limits import build_request_limits
from components.traffic.spec import GatewaySpec


@dataclass(frozen=True, kw_only=True)
class IngressGatewayArgs:
    """`chart` is Istio's gateway chart; `p99_values_ms` are the latency objectives of all models, in milliseconds, and
    `longest_request_seconds` is the longest time that a route gives a request; `request_limits` are by external host.

    `after` is made first: Istio's control plane, which turns the chart's pods into gateways and admits the Gateway object.
    """

    spec: GatewaySpec
    chart: ChartRef
    models_namespace: str
    p99_values_ms: Sequence[float]
    longest_request_seconds: int
    request_limits: Mapping[str, RequestLimits]
    after: Sequence[pulumi.Resource]


class IngressGateway(PlatformComponent):
    """Namespace, gateway pods with Service, Istio's Gateway object, and the limit of gRPC messages.

    `resource` is the Gateway object, for `depends_on`. Outputs: `gateway`, the name VirtualServices bind to; `port`, where callers connect; `namespace` and `selector` of the pods.
    """

    AREA = "traffic"

    resource: CustomResource
    gateway: pulumi.Output[str]
    port: pulumi.Output[int]
    namespace: pulumi.Output[str]
    selector: pulumi.Output[dict[str, str]]

    def __init__(self, name: str, args: IngressGatewayArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        namespace = k8s.core.v1.Namespace(f"{name}-namespace", metadata=manifest.build_namespace(manifest.NAMESPACE), opts=self.child)
        values = manifest.build_gateway_values(args.spec, args.p99_values_ms, args.longest_request_seconds)
        pods = helm_chart(manifest.NAME, args.chart, manifest.NAMESPACE, values, self.child_opts(depends_on=[namespace, *args.after]))
        body = manifest.build_gateway(args.spec, args.models_namespace)
        # After the pods: none is ready before the control plane answers, which must admit the object.
        self.resource = custom_resource(f"{name}-gateway", body, self.child_opts(depends_on=[pods]))
        limits = build_request_limits(
            f"{manifest.NAME}-request-limits", manifest.NAMESPACE, manifest.SELECTOR, manifest.HTTP_SERVER_PORT, args.request_limits
        )
        # Admitted by the control plane too; before the first route, which waits for the whole component.
        custom_resource(f"{name}-request-limits", limits, self.child_opts(depends_on=[pods]))
        self.gateway = pulumi.Output.from_input(manifest.REFERENCE)
        self.port = pulumi.Output.from_input(manifest.gateway_port(args.spec))
        self.namespace = pulumi.Output.from_input(manifest.NAMESPACE)
        self.selector = pulumi.Output.from_input(manifest.SELECTOR)
        self.register_outputs({"gateway": self.gateway, "port": self.port, "namespace": self.namespace, "selector": self.selector})
