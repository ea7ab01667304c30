"""What the front's components register, in which order."""

import pulumi
import pulumi_kubernetes as k8s

from components.core.model_identity import ModelIdentity
from components.front.model_front import ModelFront, ModelFrontArgs
from components.front.spec import FrontSpec
from components.traffic.front_connections import FrontConnections, FrontConnectionsArgs
from components.traffic.spec import RoutingSpec
from tests.engine import run

IDENTITY = ModelIdentity(name="magika", triton_name="magika", namespace="inference")


def build(settings="{}"):
    provider = k8s.Provider("cluster", kubeconfig="{}", context="x")
    cluster = pulumi.ResourceOptions(providers=[provider])
    before = k8s.core.v1.Namespace("before", metadata={"name": "before"}, opts=pulumi.ResourceOptions(provider=provider))
    connections = FrontConnections(
        "magika-front-connections", FrontConnectionsArgs(identity=IDENTITY, routing=RoutingSpec(), after=[before]), cluster
    )
    args = ModelFrontArgs(identity=IDENTITY, spec=FrontSpec(), settings=settings, image="apps:1", after=[before, connections])
    ModelFront("magika-front", args, cluster)


def test_the_front_comes_after_the_route_through_which_it_becomes_ready():
    recording = run(build)
    for kind in ("ServiceAccount", "ConfigMap", "PodDisruptionBudget"):
        assert recording.one("Namespace", "before").urn in recording.one(kind).dependencies
    assert {recording.one("ServiceAccount").urn, recording.one("ConfigMap").urn} <= set(recording.one("Deployment").dependencies)
    assert recording.one("Deployment").urn in recording.one("Service").dependencies


def test_all_its_objects_are_named_after_the_model():
    recording = run(build)
    kinds = ("ServiceAccount", "Deployment", "PodDisruptionBudget", "Service", "DestinationRule")
    assert {recording.one(kind).inputs["metadata"]["name"] for kind in kinds} == {"magika-front"}


def test_other_settings_change_the_config_map_and_the_deployment_alone():
    before, after = ({r.name: r.inputs for r in run(program).kubernetes} for program in (build, lambda: build('{"a": 1}')))
    assert [name for name in after if before[name] != after[name]] == ["magika-front-config", "magika-front-deployment"]


def test_every_object_carries_the_explicit_provider():
    """pulumi/pulumi-kubernetes#1853."""
    recording = run(build)
    provider = next(resource.urn for resource in recording.resources if resource.type == "pulumi:providers:kubernetes")
    assert {resource.provider_urn for resource in recording.kubernetes} == {provider}
