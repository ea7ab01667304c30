"""A front in a stack file: what it is told, what it needs, what is refused."""

import pytest

from components.core.model_identity import ModelIdentity
from components.errors import AssetError, ConfigError
from serving.front.settings import FrontSettingsSpec
from stacks.apps import apps_users
from stacks.assets import Assets
from stacks.front import front_settings
from stacks.loader import load
from stacks.platform import build
from tests.documents import as_pulumi_passes, built, changed, document, local_assets
from tests.engine import run

FRONT = {"replicas": 2, "maxRequestMib": 2, "memoryMib": 512}
APPS = f"registry.example.com/apps@sha256:{'0' * 64}"


def with_front(stack="local", **keys):
    return changed("models.magika.front", {**FRONT, **keys}, stack)


def refusal(config, stack="local"):
    with pytest.raises(ConfigError) as refused:
        load(stack, as_pulumi_passes(config))
    return str(refused.value)


def test_a_stack_without_a_front_registers_nothing_of_one_and_needs_no_image_for_it():
    config = load("local", as_pulumi_passes(document()))
    assert list(apps_users(config)) == []
    assets = local_assets()
    without_apps = Assets(charts=assets.charts, images={name: ref for name, ref in assets.images.items() if name != "apps"})
    recording = run(lambda: build(config, without_apps), stack="local")
    assert not [resource for resource in recording.resources if "front" in resource.name]


def test_the_front_comes_after_the_route_and_takes_the_local_image():
    recording = built(with_front())
    deployment = recording.one("Deployment", "magika-front")
    account = recording.one("ServiceAccount", "magika-front")
    assert recording.one("VirtualService").urn in account.dependencies
    assert account.urn in deployment.dependencies
    assert deployment.inputs["spec"]["template"]["spec"]["containers"][0]["image"] == "localhost/inference-platform/apps:0"


def test_a_local_image_that_was_not_built_is_said_before_anything_is_registered():
    config = load("local", as_pulumi_passes(with_front()))
    assets = local_assets()
    without_apps = Assets(charts=assets.charts, images={name: ref for name, ref in assets.images.items() if name != "apps"})
    with pytest.raises(AssetError, match="no local image 'apps'") as missing:
        run(lambda: build(config, without_apps), stack="local")
    assert "run make up" in missing.value.hint


def test_a_change_of_weights_still_changes_one_object():
    def inputs(weight):
        config = with_front()
        config["inference-platform:models"]["magika"]["canary"]["weight"] = weight
        return {resource.urn: resource.inputs for resource in built(config).resources}

    before, after = inputs(10), inputs(25)
    assert [urn.rpartition("::")[2] for urn in after if before[urn] != after[urn]] == ["magika-route-virtual-service"]


def test_it_is_told_the_gateway_the_models_host_and_its_limits_and_can_read_that():
    config = load("local", as_pulumi_passes(with_front()))
    front = config.models["magika"].front
    assert front is not None
    text = front_settings(config, "magika", front)
    settings = FrontSettingsSpec.model_validate_json(text)
    assert settings.model.address == "inference-gateway.inference-gateway.svc.cluster.local:80"
    assert settings.model.authority == "magika.inference.test"
    assert (settings.model.name, settings.model.max_batch_size) == ("magika", 16)
    assert (settings.limits.max_request_mib, settings.body_memory_mib, settings.p99_ms) == (2, 96, 200)
    assert front_settings(config, "magika", front) == text


@pytest.mark.parametrize(("priorities", "told"), [(None, {}), ({"levels": 3, "default": 2}, {"realtime": 1, "batch": 3})])
def test_it_is_told_tritons_priority_levels_where_the_model_has_some(priorities, told):
    document = with_front()
    if priorities:
        document["inference-platform:models"]["magika"]["batching"]["priorities"] = priorities
    config = load("local", as_pulumi_passes(document))
    front = config.models["magika"].front
    assert front is not None
    assert FrontSettingsSpec.model_validate_json(front_settings(config, "magika", front)).model.priorities == told


def test_the_apps_image_is_required_in_a_cloud_stack_that_has_a_front_and_only_there():
    assert "images.apps: required in dev by models.magika.front" in refusal(with_front("dev"), "dev")
    config = with_front("dev")
    config["inference-platform:images"]["apps"] = APPS
    recording = built(config, "dev")
    assert recording.one("Deployment", "magika-front").inputs["spec"]["template"]["spec"]["containers"][0]["image"] == APPS
    built(document("dev"), "dev")


def test_a_front_that_waits_longer_than_its_own_requests_may_take_is_refused():
    assert "models.magika.front.timeoutSeconds = 90" in refusal(with_front(timeoutSeconds=90))


def test_a_request_that_its_own_gateway_would_refuse_is_refused_in_the_stack_file():
    refused = refusal(with_front(maxRequestMib=3))
    assert "models.magika.front.maxRequestMib = 3: is above routing.maxRequestMib 2" in refused
    assert refused.count("models.magika.front.maxRequestMib") == 1


def test_a_model_of_the_name_that_the_fronts_objects_get_is_refused():
    config = with_front()
    config["inference-platform:models"]["magika-front"] = {"version": 1, "tritonName": "magika", "slo": {"p99Ms": 200}}
    assert "its objects are named magika-front, and so are those of model 'magika-front'" in refusal(config)


def test_memory_that_cannot_hold_a_request_is_refused_with_the_memory_that_can():
    assert "set memoryMib to at least 640" in refusal(with_front(maxRequestMib=64, memoryMib=256))


def test_the_front_is_named_after_its_model():
    identity = ModelIdentity(name="ocr", triton_name="pp_ocr", namespace="inference")
    assert identity.front_host == "ocr-front.inference.svc.cluster.local"
