"""What the components of traffic register, in which order, and below which parent."""

import pulumi
import pulumi_kubernetes as k8s
import pytest

from components.core.chart import ChartRef
from components.core.model_identity import ModelIdentity
from components.errors import ManifestError
from components.traffic.canary_route import CanaryRoute, CanaryRouteArgs
from components.traffic.gateway import IngressGateway, IngressGatewayArgs
from components.traffic.istio_manifest import Route
from components.traffic.spec import GatewaySpec, RoutingSpec
from components.traffic.version_subsets import VersionSubsets, VersionSubsetsArgs
from tests.engine import run

IDENTITY = ModelIdentity(name="magika", triton_name="magika", namespace="inference")
GATEWAY = GatewaySpec.model_validate({"domain": "inference.test", "service": {"type": "NodePort", "nodePort": 30080}})


def build(weights=None, routing=None):
    routing = routing or RoutingSpec()
    provider = k8s.Provider("cluster", kubeconfig="{}", context="x")
    cluster = pulumi.ResourceOptions(providers=[provider])
    before = k8s.core.v1.Namespace("before", metadata={"name": "before"}, opts=pulumi.ResourceOptions(provider=provider))
    args = IngressGatewayArgs(
        spec=GATEWAY,
        chart=ChartRef(chart="/charts/gateway"),
        models_namespace="inference",
        p99_values_ms=[200],
        longest_request_seconds=30,
        request_limits={"magika.inference.test": routing.requests},
        after=[before],
    )
    gateway = IngressGateway("gateway", args, cluster)
    fragments = VersionSubsetsArgs(identity=IDENTITY, versions=[1, 2], routing=routing, gateway_replicas=1, after=[gateway.resource])
    subsets = VersionSubsets("magika-subsets", fragments, cluster)
    route = Route(
        identity=IDENTITY,
        domain="inference.test",
        gateway="inference-gateway/inference-gateway",
        weights=weights or {"v1": 90, "v2": 10},
        routing=routing,
    )
    CanaryRoute("magika-route", CanaryRouteArgs(route=route, after=list(subsets.fragments.values())), cluster)


def test_a_model_has_one_route_and_a_fragment_per_version():
    recording = run(build)
    assert recording.one("VirtualService").inputs["metadata"]["name"] == "magika"
    assert {rule.inputs["metadata"]["name"] for rule in recording.of_type("DestinationRule")} == {"magika-v1", "magika-v2"}


def test_a_change_of_weights_changes_the_virtual_service_and_nothing_else():
    before, after = ({r.urn: r.inputs for r in run(program).kubernetes} for program in (build, lambda: build({"v1": 75, "v2": 25})))
    assert before.keys() == after.keys()
    changed = [urn.split("::")[2].rpartition("$")[2] for urn in after if after[urn] != before[urn]]
    assert changed == ["kubernetes:networking.istio.io/v1:VirtualService"]


def test_the_route_comes_after_the_subsets_it_names_and_those_after_the_gateway_that_proves_istio_ready():
    recording = run(build)
    fragments = {rule.urn for rule in recording.of_type("DestinationRule")}
    assert fragments <= set(recording.one("VirtualService").dependencies)
    for rule in recording.of_type("DestinationRule"):
        assert recording.one("Gateway").urn in rule.dependencies


def test_gateway_pods_come_after_the_control_plane_and_the_gateway_object_after_the_pods():
    recording = run(build)
    chart = recording.one("Chart")
    assert recording.one("Namespace", "before").urn in chart.dependencies
    assert chart.urn in recording.one("Gateway").dependencies


def test_the_limit_of_grpc_messages_is_there_before_the_route_of_its_model():
    recording = run(build)
    limits = recording.one("EnvoyFilter")
    assert [patch["applyTo"] for patch in limits.inputs["spec"]["configPatches"]] == ["HTTP_FILTER", "VIRTUAL_HOST"]
    assert recording.one("Chart").urn in limits.dependencies


def test_every_kubernetes_object_and_chart_carries_the_explicit_provider():
    """pulumi/pulumi-kubernetes#1853."""
    recording = run(build)
    provider = next(resource.urn for resource in recording.resources if resource.type == "pulumi:providers:kubernetes")
    touching_a_cluster = [*recording.kubernetes, *recording.of_type("Chart")]
    assert len(touching_a_cluster) == 8
    assert {resource.provider_urn for resource in touching_a_cluster} == {provider}


def test_every_child_hangs_below_its_component():
    recording = run(build)
    components = {resource.urn for resource in recording.resources if resource.type.startswith("inference:traffic:")}
    children = [r for r in recording.resources if r.type.startswith("kubernetes:") and r.name != "before"]
    assert {child.parent for child in children} == components


def test_outputs_say_where_callers_connect():
    recording = run(build)
    by_type = {urn.split("::")[2].rpartition("$")[2]: outputs for urn, outputs in recording.outputs.items()}
    assert by_type["inference:traffic:IngressGateway"]["gateway"] == "inference-gateway/inference-gateway"
    assert by_type["inference:traffic:IngressGateway"]["port"] == 30080
    assert by_type["inference:traffic:CanaryRoute"] == {"host": "magika.inference.test", "weights": {"v1": 90, "v2": 10}}


def test_a_host_the_gateway_does_not_serve_is_rejected_before_a_route_is_made():
    with pytest.raises(ManifestError, match="not under the gateway's domain"):
        run(lambda: build(routing=RoutingSpec(host="magika.example.com")))
