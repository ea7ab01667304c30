"""A stack file is taken whole or refused with every fault, its place and the way out."""

from typing import Any

import pytest

from components.errors import ConfigError
from stacks.config import StackConfig
from stacks.loader import load
from tests.documents import ENVIRONMENTS, as_pulumi_passes, changed, document, without


def loaded(config: dict[str, Any], stack: str = "local", secret: frozenset[str] = frozenset()) -> StackConfig:
    return load(stack, as_pulumi_passes(config), secret)


def refusal(config: dict[str, Any], stack: str = "local", secret: frozenset[str] = frozenset()) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(config, stack, secret)
    return str(caught.value)


@pytest.mark.parametrize("stack", ENVIRONMENTS)
def test_every_committed_stack_file_is_valid_once_its_user_has_filled_it_in(stack: str) -> None:
    assert loaded(document(stack), stack).environment.value == stack


def test_a_stack_may_carry_a_suffix_to_its_environment() -> None:
    assert loaded(document("local"), "local-two").environment.value == "local"


@pytest.mark.parametrize("stack", ["dev", "locally", "two-local"])
def test_a_stack_named_after_another_environment_is_refused(stack: str) -> None:
    assert f"environment = \"local\": the stack is named '{stack}'" in refusal(document("local"), stack)


@pytest.mark.parametrize(
    ("path", "value", "meant"),
    [
        ("gatewy", {}, "gateway"),
        ("models.magika.canry", {}, "canary"),
        ("models.magika.canary.wieght", 1, "weight"),
        ("models.magika.slo.p99_ms", 1, "p99Ms"),
        ("models.magika.triton_name", "magika", "tritonName"),
        ("cluster.kubeContext", "x", "context"),
        ("addons.istio.source.versoin", "1.2.3", "version"),
        ("gateway.service.nodeport", 30081, "nodePort"),
    ],
)
def test_an_unknown_key_is_refused_at_any_depth_with_the_likely_meaning(path: str, value: Any, meant: str) -> None:
    text = refusal(changed(path, value))
    assert f"{path}: unknown key" in text
    assert f"did you mean {meant}?" in text


@pytest.mark.parametrize(
    ("path", "way_out"),
    [
        ("models.magika.slo", "set it: pulumi config set --path models.magika.slo.p99Ms <value>"),
        ("gateway", "pulumi config set --path gateway.domain <value> and pulumi config set --path gateway.service <value>"),
        ("models.magika.version", "set it: pulumi config set --path models.magika.version <value>"),
    ],
)
def test_for_a_missing_key_the_way_out_names_the_values_to_set(path: str, way_out: str) -> None:
    assert way_out in refusal(without(path))


def test_a_value_in_place_of_keys_is_refused_with_the_keys() -> None:
    assert "write keys below it: count, further, gpus, kind, profiles" in refusal(changed("models.magika.instances", 2))


def test_a_fault_below_a_word_that_stands_for_keys_is_told_like_any_other() -> None:
    """`batching: throughput` means keys that are not in the file."""
    model = {"version": 1, "slo": {"p99Ms": 40}, "batching": "throughput"}
    assert "models.magika.batching.maxQueueDelayMicroseconds: lets a request wait 50 ms" in refusal(changed("models.magika", model))


def test_a_key_that_resembles_nothing_lists_what_may_stand_there() -> None:
    text = refusal(changed("models.magika.canary.zzz", 1))
    assert "did you mean" not in text
    assert "known keys here: version, weight" in text


@pytest.mark.parametrize("weight", [-1, 101, 12.5, True, "25", None, [25], {"stable": 90}])
def test_a_weight_that_is_no_whole_percentage_is_refused(weight: Any) -> None:
    """istio/istio#50228, kiali/kiali#2108."""
    text = refusal(changed("models.magika.canary.weight", weight))
    assert "models.magika.canary.weight" in text


@pytest.mark.parametrize("weight", [0, 1, 100])
def test_the_ends_of_the_scale_are_weights(weight: Any) -> None:
    canary = loaded(changed("models.magika.canary.weight", weight)).models["magika"].canary
    assert canary is not None
    assert canary.weight == weight


def test_a_canary_without_weight_is_an_error_not_a_default() -> None:
    """istio/api#586."""
    assert "models.magika.canary.weight: required key is missing" in refusal(without("models.magika.canary.weight"))


def test_a_number_in_quotes_is_refused_with_the_command_that_sets_a_number() -> None:
    text = refusal(changed("models.magika.slo.errorRatio", "0.02"))
    assert 'models.magika.slo.errorRatio = "0.02"' in text
    assert "pulumi config set --path --type float models.magika.slo.errorRatio" in text


@pytest.mark.parametrize(("path", "key"), [("models.magika.version", "version"), ("models.magika.canary.version", "canary.version")])
def test_a_version_that_is_not_in_the_repository_is_refused_with_those_that_are(path: str, key: str) -> None:
    text = refusal(changed(path, 9))
    assert f"models.magika.{key} = 9: model 'magika' has no version 9" in text
    assert "published versions: 1, 2" in text


def test_a_canary_of_the_stable_version_is_refused() -> None:
    assert "models.magika.canary.version = 1: is the stable version too" in refusal(changed("models.magika.canary.version", 1))


@pytest.mark.parametrize("name", ["Magika", "ma_gika", "ma.gika", "-magika", "1magika", "m" * 41, "magika ", ""])
def test_a_model_name_that_is_no_dns_label_is_refused(name: str) -> None:
    text = refusal(changed("models", {name: document()["inference-platform:models"]["magika"]}))
    assert "is no DNS label" in text or "41 characters" in text


def test_a_model_the_repository_does_not_hold_is_refused_with_those_it_holds() -> None:
    config = changed("models", {"resnet": document()["inference-platform:models"]["magika"]})
    assert "models.resnet: the model repository has no model 'resnet'" in refusal(config)
    assert "models there are: magika" in refusal(config)


def test_another_name_for_a_published_model_needs_its_triton_name() -> None:
    settings = document()["inference-platform:models"]["magika"]
    config = changed("models", {"file-types": {**settings, "tritonName": "magika"}})
    assert loaded(config).models["file-types"].identity("file-types", "inference").triton_name == "magika"


def test_a_stack_without_context_is_refused_by_the_missing_key() -> None:
    """pulumi/pulumi-kubernetes#1853."""
    text = refusal(without("cluster.context"))
    assert "cluster.context: required key is missing" in text
    assert "pulumi config set --path cluster.context" in text


def test_a_key_of_a_default_provider_is_refused_because_it_would_do_nothing() -> None:
    """pulumi/pulumi-kubernetes#1853."""
    config = document()
    config["kubernetes:context"] = "prod"
    assert "kubernetes:context: has no effect" in refusal(config)


def test_a_path_set_without_the_path_flag_is_refused_with_the_right_command() -> None:
    config = document()
    config["inference-platform:models.magika.canary.weight"] = "25"
    text = refusal(config)
    assert "pulumi config rm 'inference-platform:models.magika.canary.weight'" in text
    assert "pulumi config set --path models.magika.canary.weight <value>" in text


def test_a_route_that_gives_up_before_the_server_does_is_refused() -> None:
    assert "models.magika.routing.timeoutSeconds = 10: is below server.maxRequestSeconds 30" in refusal(
        changed("models.magika.routing.timeoutSeconds", 10)
    )


def test_two_models_on_one_host_are_refused() -> None:
    settings = document()["inference-platform:models"]["magika"]
    other = {**settings, "tritonName": "magika", "routing": {"host": "magika.inference.test"}}
    text = refusal(changed("models", {"magika": settings, "other": other}))
    assert "models.other.routing.host = \"magika.inference.test\": host magika.inference.test belongs to model 'magika' already" in text


def test_a_host_outside_the_gateways_domain_is_refused() -> None:
    assert "is not under the gateway's domain" in refusal(changed("models.magika.routing.host", "magika.elsewhere.test"))


def test_what_the_components_would_refuse_is_refused_before_anything_is_registered() -> None:
    text = refusal(changed("models.magika.server", {"memoryMib": 256}))
    assert "models.magika.server.memoryMib = 256: model 'magika': server.memoryMib 256 is too small" in text


def test_gpus_of_a_pool_that_does_not_exist_are_refused() -> None:
    text = refusal(changed("models.magika.server", {"gpusPerReplica": 1, "nodePool": "a100"}))
    assert "node pool 'a100' does not exist" in text


def test_two_slots_of_a_shared_pool_are_refused_naming_pool_and_model() -> None:
    """NVIDIA/gpu-operator#386."""
    config = changed("models.magika.server", {"gpusPerReplica": 2, "nodePool": "shared"})
    sharing = {"mode": "time-slicing", "replicas": 4}
    pool = {"accelerator": "a100", "cardsPerNode": 4, "cardMemoryMib": 40960, "minNodes": 0, "maxNodes": 2, "sharing": sharing}
    config["inference-platform:nodePools"] = {"shared": pool}
    text = refusal(config)
    assert "model 'magika' on node pool 'shared': 2 slots per replica" in text


@pytest.mark.parametrize("stack", ["dev", "staging", "prod"])
def test_a_cloud_stack_without_serving_image_says_how_to_get_one(stack: str) -> None:
    text = refusal(without("images", stack), stack)
    assert "images.triton: required in" in text
    assert "pulumi config set --path images.triton" in text


def test_simulated_gpus_are_for_the_local_environment() -> None:
    assert "cluster.simulatedGpus: GPUs are simulated in the environment local only" in refusal(
        changed("cluster.simulatedGpus", {"count": 1, "memoryMib": 1024}, "dev"), "dev"
    )


def test_all_faults_come_at_once_under_the_name_of_the_stack() -> None:
    config = changed("models.magika.canary.weight", 120)
    config["inference-platform:gatewy"] = {}
    config["kubernetes:context"] = "prod"
    del config["inference-platform:cluster"]["context"]
    text = refusal(config)
    assert text.startswith("stack local: 4 faults in the configuration")
    assert "stacks/Pulumi.local.yaml; nothing was changed" in text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("models.magika.canary.weight", "hunter2"),
        ("models.magika.tritonName", "hunter2"),
        ("models.magika.routing.host", "hunter2.example.com"),
        ("models.magika.routing.host", "hunter2"),
        ("models.magika.server.cpuRequest", "hunter2"),
        ("models.magika.routing.retries", {"on": ["hunter2"]}),
        ("models.magika.canary", "hunter2"),
    ],
)
def test_a_secret_value_appears_in_no_error(path: str, value: Any) -> None:
    text = refusal(changed(path, value), secret=frozenset({"inference-platform:models"}))
    assert "hunter2" not in text
    assert "models.magika" in text


def test_a_whole_area_of_the_wrong_kind_is_one_fault() -> None:
    assert "stack local: 1 fault in the configuration" in refusal(changed("models", "magika"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("models.magika.server.memoryMib", 10**400),
        ("models.magika.server.terminationGracePeriodSeconds", 10**19),
        ("models.magika.server.cpuRequest", 1e-320),
        ("models.magika.tritonName", ""),
        ("nodePools", {"gpus": {"accelerator": "a100", "cardsPerNode": 1, "cardMemoryMib": 10**19, "minNodes": 0, "maxNodes": 1}}),
    ],
)
def test_a_number_no_api_server_takes_and_a_name_that_is_none_are_refused_before_anything_changes(path: str, value: Any) -> None:
    assert path in refusal(changed(path, value))


def test_a_value_of_any_length_leaves_the_message_readable() -> None:
    text = refusal(changed("models.magika.version", "9" * 5000))
    assert "(5002 characters)" in text
    assert len(text) < 1000


def test_a_model_from_elsewhere_needs_the_image_of_the_apps_where_a_registry_serves_images() -> None:
    text = refusal(changed("models.magika.repository", {"kind": "volume", "claim": "models"}, stack="prod"), "prod")
    assert "images.apps: required in prod by models.magika.repository" in text
    assert "pulumi config set --path images.apps" in text


def test_a_repository_of_an_unknown_kind_lists_those_there_are() -> None:
    assert "image" in refusal(changed("models.magika.repository", {"kind": "ftp"}))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("models.magika.repository", "'image', 'volume', 'objectStore'"),
        ("gateway.service", "'NodePort', 'LoadBalancer'"),
        ("addons.istio.source", "'module', 'chart'"),
    ],
)
def test_a_kind_that_there_is_not_is_refused_at_its_own_key_with_those_there_are(path: str, said: str) -> None:
    key = f"{path}.{'type' if path == 'gateway.service' else 'kind'}"
    text = refusal(changed(key, "yes"))
    assert f'{key} = "yes": is none of {said}' in text
    assert f"pulumi config set --path {key} <value>" in text


def test_a_map_without_its_kind_is_refused_by_the_missing_key() -> None:
    assert "models.magika.repository.kind: required key is missing" in refusal(changed("models.magika.repository", {"bucket": "x"}))


@pytest.mark.parametrize("path", ["cluster.namespace", "models.magika.tritonName", "models.magika.batching", "models.magika.repository.kind"])
def test_a_refusal_stays_readable_whatever_was_pasted_into_the_file(path: str) -> None:
    assert len(refusal(changed(path, "x" * 10_000))) < 1500


@pytest.mark.parametrize("depth", [300, 100_000])
def test_values_nested_without_end_are_refused(depth: int) -> None:
    raw = {**as_pulumi_passes(document()), "inference-platform:models": "[" * depth + "]" * depth}
    with pytest.raises(ConfigError, match="1 fault in the configuration"):
        load("local", raw)
