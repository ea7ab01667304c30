"""Which versions may get traffic: every state against every kind of weight, and what a registry that cannot be asked costs."""

from itertools import product
from typing import Any

import pytest

from components.core.faults import Fault
from components.errors import ConfigError
from serving.registry.errors import RegistryError
from serving.registry.location import REGISTRY_VARIABLE, Location
from serving.registry.record import State, VersionRecord
from serving.registry.view import RegistryView
from stacks.config import StackConfig
from stacks.key_paths import dotted
from stacks.loader import check_versions, load
from stacks.registry import registry_view
from stacks.rules_versions import registry_faults
from tests.documents import as_pulumi_passes, changed, document, without
from tests.registries import MODEL, published, view_of

LIMIT = 50
STABLE_KEY, WEIGHT_KEY = f"models.{MODEL}.version", f"models.{MODEL}.canary.weight"
ACTIVE_1 = published(1, state=State.ACTIVE)
PASSWORD = "hunter2"  # noqa: S105  (nobody's)


def stack(weight: int = 10, **registry: Any) -> dict[str, Any]:
    """The local stack with this weight of version 2."""
    config = changed("models.magika.canary.weight", weight)
    config["inference-platform:registry"] = {"maxTestingWeight": LIMIT, **registry}
    return config


def loaded(config: dict[str, Any]) -> StackConfig:
    return load("local", as_pulumi_passes(config))


def faults(config: dict[str, Any], *records: VersionRecord) -> dict[str, Fault]:
    return {dotted(fault.keys): fault for fault in registry_faults(loaded(config), view_of(*records))}


def refusal(config: dict[str, Any], view: RegistryView, secret: frozenset[str] = frozenset()) -> str:
    with pytest.raises(ConfigError) as refused:
        check_versions(loaded(config), "local", as_pulumi_passes(config), secret, lambda _: view)
    return str(refused.value)


@pytest.mark.parametrize("weight", [0, 1, LIMIT, LIMIT + 1, 100])
def test_a_version_gets_traffic_exactly_when_its_state_allows_it(weight: int) -> None:
    config = loaded(stack(weight))
    for stable, canary in product([*State, None], repeat=2):
        records = [published(version, state=state) for version, state in ((1, stable), (2, canary)) if state is not None]
        allowed = weight == 0 or canary is State.ACTIVE or (canary is State.TESTING and weight <= LIMIT)
        expected = ({STABLE_KEY} if stable is not State.ACTIVE else set()) | (set() if allowed else {WEIGHT_KEY})
        found = list(registry_faults(config, view_of(*records)))
        assert {dotted(fault.keys) for fault in found} == expected, (stable, canary)
        assert all(fault.reason and fault.way_out for fault in found)


@pytest.mark.parametrize(
    ("records", "weight", "said"),
    [
        (
            (ACTIVE_1, published(2)),
            51,
            (
                f"{WEIGHT_KEY} = 51: version 2 is TESTING in the registry and gets at most registry.maxTestingWeight 50\n"
                "      -> lower the weight, or: .venv/bin/python -m serving.registry promote magika 2"
            ),
        ),
        (
            (ACTIVE_1, published(2, state=State.ARCHIVED)),
            1,
            (
                f"{WEIGHT_KEY} = 1: version 2 is ARCHIVED in the registry and gets no traffic\n"
                f"      -> pulumi config set --path {WEIGHT_KEY} 0, or: .venv/bin/python -m serving.registry restore magika 2"
            ),
        ),
        (
            (ACTIVE_1,),
            1,
            f"{WEIGHT_KEY} = 1: version 2 of 'magika' is not in the registry\n      -> .venv/bin/python -m serving.registry register magika 2",
        ),
        (
            (published(1), published(2)),
            0,
            (
                f"{STABLE_KEY} = 1: is TESTING in the registry, and the stable version must be ACTIVE\n"
                "      -> .venv/bin/python -m serving.registry promote magika 1"
            ),
        ),
    ],
)
def test_a_refusal_names_key_value_reason_and_way_out(records: tuple[VersionRecord, ...], weight: int, said: str) -> None:
    text = refusal(stack(weight), view_of(*records))
    assert text.startswith("stack local: 1 fault in the configuration\n")
    assert said in text
    assert "nothing was changed" in text


def test_a_stable_version_that_is_not_registered_is_told_with_every_command_that_it_needs() -> None:
    assert faults(stack(0))[STABLE_KEY].way_out == (
        ".venv/bin/python -m serving.registry register magika 1 && .venv/bin/python -m serving.registry promote magika 1"
    )


def test_all_faults_come_at_once() -> None:
    assert "2 faults" in refusal(stack(60), view_of())


def test_a_version_without_traffic_may_be_anything() -> None:
    assert faults(stack(0), ACTIVE_1, published(2, artefact_sha256="f" * 64, requires={"triton": ">=99"})) == {}


@pytest.mark.parametrize(("version", "key"), [(1, STABLE_KEY), (2, WEIGHT_KEY)])
def test_another_artefact_than_the_registered_one_is_refused(version: int, key: str) -> None:
    records = [published(number, state=State.ACTIVE, **({"artefact_sha256": "f" * 64} if number == version else {})) for number in (1, 2)]
    served = published(version).artefact_sha256
    found = faults(stack(), *records)
    assert set(found) == {key}
    assert f"version {version} is registered with artefact {'f' * 12}, and model.yaml with its code has {served[:12]}" in found[key].reason


@pytest.mark.parametrize(("version", "key"), [(1, STABLE_KEY), (2, WEIGHT_KEY)])
def test_a_version_for_another_triton_is_refused(version: int, key: str) -> None:
    records = [published(number, state=State.ACTIVE, **({"requires": {"triton": "<2.51"}} if number == version else {})) for number in (1, 2)]
    assert faults(stack(), *records)[key].reason == f"version {version} needs triton <2.51, and the image has 2.51.0, says the registry"


def test_with_a_registry_an_unknown_triton_is_no_guess() -> None:
    config = stack(0)
    config["inference-platform:images"] = {"variant": "gpu", "triton": "registry.example.com/triton:1"}
    try:
        found = faults(config, ACTIVE_1)
    except ConfigError:
        pytest.fail("the stack is refused for another reason")
    assert "the image's Triton is not known" in found[STABLE_KEY].reason
    assert "images.tritonVersion" in found[STABLE_KEY].way_out


@pytest.mark.parametrize("path", ["models.magika.version", "models.magika.canary.version"])
def test_without_a_registry_too_an_image_that_is_too_old_is_refused(path: str) -> None:
    config = without("registry")
    config["inference-platform:images"] = {"tritonVersion": "2.40.0"}
    with pytest.raises(ConfigError) as refused:
        loaded(config)
    assert (
        f"{path} = {1 if path == STABLE_KEY else 2}: magika version {1 if path == STABLE_KEY else 2} needs triton >=2.51, and the image has 2.40.0"
        in str(refused.value)
    )


@pytest.mark.parametrize("version", ["new", "", ">=2.51"])
def test_a_triton_version_that_is_none_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, match=r"images\.tritonVersion"):
        loaded(changed("images", {"tritonVersion": version}))


def test_a_stack_without_registry_asks_none() -> None:
    config = without("registry")
    assert registry_view(loaded(config), {}, lambda *_: pytest.fail("a registry was asked")) is None
    check_versions(loaded(config), "local", as_pulumi_passes(config), view=lambda _: None)


def test_the_registry_is_asked_once_for_the_models_of_the_stack_within_the_stacks_limit() -> None:
    asked: list[tuple[str, list[str], float]] = []

    def ask(location: Location, names: list[str], seconds: float) -> RegistryView:
        asked.append((str(location), names, seconds))
        return RegistryView()

    settings = document()["inference-platform:models"]["magika"]
    config = stack(uri="https://user:pw@registry.example.com", timeoutSeconds=3)
    config["inference-platform:models"] = {"file-types": {**settings, "tritonName": "magika"}}
    registry_view(loaded(config), {REGISTRY_VARIABLE: "sqlite:////ambient.db"}, ask)
    assert asked == [("https://registry.example.com", ["magika"], 3)]


def test_the_local_stack_takes_the_registry_of_its_shell_and_says_where_there_is_none() -> None:
    config = loaded(stack())
    assert registry_view(config, {REGISTRY_VARIABLE: "sqlite:////a.db"}, lambda *_: RegistryView()) == RegistryView()
    for environment in ({}, {REGISTRY_VARIABLE: ""}):
        with pytest.raises(ConfigError, match=f"{REGISTRY_VARIABLE} is not set") as refused:
            registry_view(config, environment)
        assert "make env" in refused.value.hint
    with pytest.raises(ConfigError, match=f"{REGISTRY_VARIABLE} is no place of a registry"):
        registry_view(config, {REGISTRY_VARIABLE: "nowhere"})


def test_a_cloud_stack_names_its_registry_itself() -> None:
    config = changed("registry", {}, "dev")
    with pytest.raises(ConfigError, match=r"registry\.uri: required in dev"):
        load("dev", as_pulumi_passes(config))


@pytest.mark.parametrize("uri", ["registry.db", "sqlite:///registry.db", f"postgresql://user:{PASSWORD}@host/db", ""])
def test_an_address_that_is_none_is_refused_and_its_password_not_shown(uri: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(stack(uri=uri))
    assert "registry.uri = " in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_a_registry_that_cannot_be_asked_stops_everything_and_says_how_to_go_on() -> None:
    def away(_: StackConfig) -> RegistryView:
        raise RegistryError("registry https://registry.example.com did not answer within 3 s", hint="is the server up?")

    config = stack(uri="https://registry.example.com")
    with pytest.raises(ConfigError) as refused:
        check_versions(loaded(config), "local", as_pulumi_passes(config), view=away)
    text = str(refused.value)
    assert "stack local: registry: registry https://registry.example.com did not answer within 3 s" in text
    assert "is the server up?; nothing was changed. To go on without one: pulumi config rm registry" in text
    with pytest.raises(ConfigError) as refused:
        check_versions(loaded(config), "local", as_pulumi_passes(config), frozenset({"inference-platform:registry"}), away)
    assert "registry.example.com" not in str(refused.value)


def test_where_a_key_is_secret_no_reason_quotes_a_value() -> None:
    text = refusal(stack(60), view_of(ACTIVE_1, published(2)), frozenset({"inference-platform:models"}))
    assert f"{WEIGHT_KEY}: not a valid value" in text
    assert "60" not in text
