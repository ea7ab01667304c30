"""The front's objects."""

from components import labels
from components.core.model_identity import ModelIdentity
from components.front import front_manifest as manifest
from components.front.spec import FrontSpec

IDENTITY = ModelIdentity(name="magika", triton_name="magika", namespace="inference")


def plan(settings="{}", **keys):
    return manifest.FrontPlan(identity=IDENTITY, spec=FrontSpec.model_validate(keys), settings=settings)


def pod(**keys):
    return manifest.build_deployment(plan(**keys), "apps:1")["spec"]["template"]


def container(**keys):
    (only,) = pod(**keys)["spec"]["containers"]
    return only


def test_the_models_own_service_does_not_select_the_fronts_pods():
    """They would be sent inference requests of the v2 protocol."""
    own = pod()["metadata"]["labels"]
    assert not labels.model_selector("magika").items() <= own.items()
    assert manifest.build_service(plan())["spec"]["selector"].items() <= own.items()


def test_every_port_says_its_protocol_in_its_name():
    """istio/istio#7117."""
    for port in manifest.build_service(plan())["spec"]["ports"]:
        assert port["name"].startswith("http-")
        assert port["appProtocol"] == "http"


def test_readiness_asks_for_the_model_and_liveness_does_not():
    """A model that is away is no reason to start the front anew (triton-inference-server/server#7014)."""
    assert container()["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert container()["livenessProbe"]["httpGet"]["path"] == "/health/live"
    assert container()["startupProbe"]["httpGet"]["path"] == "/health/live"


def test_a_pod_lives_long_enough_for_its_longest_request_after_the_drain():
    spec = pod(timeoutSeconds=120)["spec"]
    assert spec["terminationGracePeriodSeconds"] >= manifest.DRAIN_SECONDS + 120 + 5


def test_an_update_never_has_fewer_pods_than_before():
    strategy = manifest.build_deployment(plan(), "apps:1")["spec"]["strategy"]["rollingUpdate"]
    assert strategy == {"maxSurge": 1, "maxUnavailable": 0}


def test_other_settings_make_another_config_map_and_so_other_pods():
    """pulumi/pulumi#2167."""
    first, second = plan("{}"), plan('{"a": 1}')
    assert first.config_map != second.config_map
    assert manifest.build_deployment(first, "i") != manifest.build_deployment(second, "i")
    assert manifest.build_config_map(first)["immutable"] is True


def test_it_writes_nowhere_and_is_nobody():
    security = container()["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert [mount["readOnly"] for mount in container()["volumeMounts"]] == [True]
    assert pod()["spec"]["securityContext"]["runAsUser"] == 65532
    assert pod()["spec"]["automountServiceAccountToken"] is False
