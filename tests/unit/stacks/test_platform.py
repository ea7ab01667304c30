"""What the composition root joins: providers, order, outputs."""

import json
from typing import Any

import pulumi
import pytest

from serving.artefact import artefact_sha256
from serving.model_manifest import model_manifest
from stacks.loader import load
from stacks.platform import PlatformOutputs, build
from tests.documents import ENVIRONMENTS, as_pulumi_passes, built, changed, document, local_assets, without
from tests.engine import PROVIDER_PREFIX, run


@pytest.mark.parametrize("stack", ENVIRONMENTS)
def test_every_kubernetes_object_has_the_stacks_own_provider(stack: str) -> None:
    """pulumi/pulumi-kubernetes#1853."""
    recording = built(document(stack), stack)
    [provider] = [resource for resource in recording.resources if resource.type.startswith(PROVIDER_PREFIX)]
    charts = recording.of_type("Chart")
    assert recording.kubernetes
    assert charts
    assert {resource.provider_urn for resource in (*recording.kubernetes, *charts)} == {provider.urn}


@pytest.mark.parametrize("stack", ENVIRONMENTS)
def test_default_providers_are_disabled_in_every_stack_file(stack: str) -> None:
    """pulumi/pulumi-kubernetes#1853."""
    assert document(stack)["pulumi:disable-default-providers"] == ["*"]


def test_nothing_waits_for_its_namespace_in_vain_and_the_route_comes_last() -> None:
    recording = built(document())
    after = {urn.rpartition("::")[2] for urn in recording.one("VirtualService").dependencies}
    assert {"magika-v1-deployment", "magika-v2-deployment", "magika-service", "magika-subsets-v1", "magika-subsets-v2", "gateway-gateway"} <= after


def test_a_versions_pods_never_outlive_the_subset_that_names_them() -> None:
    recording = built(document())
    for version in (1, 2):
        deployment = recording.one("Deployment", f"magika-v{version}")
        assert f"magika-subsets-v{version}" in {urn.rpartition("::")[2] for urn in deployment.dependencies}


def test_a_weight_changes_the_inputs_of_exactly_one_object() -> None:
    before = {resource.urn: resource.inputs for resource in built(document()).resources}
    after = {resource.urn: resource.inputs for resource in built(changed("models.magika.canary.weight", 25)).resources}
    assert [urn.rpartition("::")[2] for urn in after if before[urn] != after[urn]] == ["magika-route-virtual-service"]


def test_a_removed_canary_leaves_the_stable_versions_objects_as_they_were() -> None:
    before = {resource.urn: resource.inputs for resource in built(document()).resources}
    after = {resource.urn: resource.inputs for resource in built(without("models.magika.canary")).resources}
    assert {urn.rpartition("::")[2] for urn in before.keys() - after.keys()} == {
        "magika-v2-deployment",
        "magika-v2-config",
        "magika-v2-budget",
        "magika-subsets-v2",
    }
    assert [urn.rpartition("::")[2] for urn in after if before[urn] != after[urn]] == ["magika-route-virtual-service"]


def test_promotion_restarts_no_pod() -> None:
    canary = {resource.urn: resource.inputs for resource in built(document()).resources}
    promoted = without("models.magika.canary")
    promoted["inference-platform:models"]["magika"]["version"] = 2
    after = built(promoted)
    assert after.one("Deployment", "magika-v2").inputs == canary[after.one("Deployment", "magika-v2").urn]
    assert [resource.inputs["metadata"]["name"] for resource in after.of_type("Deployment")] == ["magika-v2"]


def reordered(value: Any) -> Any:
    """The same document with the keys of every mapping the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("stack", ENVIRONMENTS)
def test_the_order_of_the_keys_changes_nothing(stack: str) -> None:
    """pulumi/pulumi-kubernetes#1568: no diff, so no rollout."""
    before, after = ({r.urn: r.inputs for r in built(config, stack).resources} for config in (document(stack), reordered(document(stack))))
    assert after == before


@pytest.mark.parametrize(
    ("keys", "promised"),
    [
        ({}, 60),
        ({"routing": {"timeoutSeconds": 90}}, 90),
        ({"routing": {"timeoutSeconds": 90.2}}, 91),
        # The route to a front gives it 5 s more to say that time is up.
        ({"routing": {"timeoutSeconds": 90}, "front": {"timeoutSeconds": 90}}, 95),
    ],
)
def test_the_gateway_drains_as_long_as_the_routes_promise_a_request(keys: dict[str, object], promised: int) -> None:
    """triton-inference-server/server#6939: the proxy in front outlives the servers behind."""
    settings = document()["inference-platform:models"]["magika"]
    slow = {**settings, "tritonName": "magika", **keys}
    [gateway] = [chart for chart in built(changed("models.slow", slow)).of_type("Chart") if chart.name == "inference-gateway"]
    drain = json.loads(gateway.inputs["values"]["podAnnotations"]["proxy.istio.io/config"])["terminationDrainDuration"]
    assert int(drain.removesuffix("s")) >= promised
    assert gateway.inputs["values"]["terminationGracePeriodSeconds"] > promised


def test_simulated_gpus_are_made_only_where_they_are_asked_for() -> None:
    assert len(built(document()).of_type("DaemonSet")) == 1
    assert built(without("cluster.simulatedGpus")).of_type("DaemonSet") == []


def test_the_models_namespace_enforces_the_restricted_standard_and_gives_no_token_away() -> None:
    recording = built(document())
    assert recording.one("Namespace", "inference").inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert recording.one("ServiceAccount", "default").inputs["automountServiceAccountToken"] is False


def test_outputs_tell_where_each_model_is_and_who_gets_what() -> None:
    collected: list[PlatformOutputs] = []
    seen: list[object] = []

    def program() -> None:
        outputs = build(load("local", as_pulumi_passes(document())), local_assets())
        collected.append(outputs)
        pulumi.Output.from_input(outputs.exports()).apply(seen.append)

    run(program, stack="local")
    assert seen == [
        {
            "namespace": "inference",
            "gateway": {"domain": "inference.test", "port": 30080},
            "models": {"magika": {"host": "magika.inference.test", "tritonName": "magika", "versions": [1, 2], "weights": {"v1": 90, "v2": 10}}},
        }
    ]


STORE = {"kind": "objectStore", "bucket": "models", "endpoint": "http://10.0.0.1:9000", "serviceAccountAnnotations": {"example.com/role": "reader"}}


def fetching(**cluster: Any) -> dict[str, Any]:
    """The local stack with its model in an object store."""
    config = changed("models.magika.repository", STORE)
    config["inference-platform:cluster"] = {**config["inference-platform:cluster"], **cluster}
    config["inference-platform:images"] = {"apps": "registry.example.com/apps:1"}
    return config


def test_a_model_from_an_object_store_is_fetched_by_the_image_of_the_apps_under_a_role_of_its_own() -> None:
    recording = built(fetching())
    for deployment in (recording.one("Deployment", "magika-v1"), recording.one("Deployment", "magika-v2")):
        [init] = deployment.inputs["spec"]["template"]["spec"]["initContainers"]
        assert init["image"] == "registry.example.com/apps:1"
        version = int(deployment.inputs["metadata"]["name"][-1])
        # What the registry approves is what the pod takes.
        assert init["args"][-1] == f"magika/{version}@sha256:{artefact_sha256(model_manifest('magika'), version)}"
    assert recording.one("ServiceAccount", "magika").inputs["metadata"]["annotations"] == {"example.com/role": "reader"}
    assert recording.of_type("ModelCache") == []


def test_a_cache_of_the_nodes_is_there_before_the_pods_that_use_it() -> None:
    recording = built(fetching(modelCache={"path": "/var/lib/models", "sizeGib": 1}))
    claim = recording.one("PersistentVolumeClaim")
    assert claim.urn in recording.one("Deployment", "magika-v1").dependencies
    [volume] = [v for v in recording.one("Deployment", "magika-v1").inputs["spec"]["template"]["spec"]["volumes"] if v["name"] == "model-cache"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim.inputs["metadata"]["name"]


def test_a_cache_that_no_model_uses_is_not_made() -> None:
    config = document()
    config["inference-platform:cluster"]["modelCache"] = {"path": "/var/lib/models", "sizeGib": 1}
    assert built(config).of_type("ModelCache") == []
