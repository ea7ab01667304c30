"""The recording engine itself: it must not hide what a program does."""

import asyncio
import os

import pulumi
import pulumi_kubernetes
import pytest

from tests.engine import run


def config_map(name, **opts):
    return pulumi_kubernetes.core.v1.ConfigMap(name, metadata={"name": name}, data={"key": "value"}, opts=pulumi.ResourceOptions(**opts))


def test_what_depends_on_late_values_is_recorded_too():
    """The program returns before its last resource is registered."""

    def build():
        first = config_map("first")
        late = first.metadata["name"].apply(lambda name: f"{name}-suffix")
        pulumi_kubernetes.core.v1.ConfigMap("second", metadata={"name": late})

    assert [r.inputs["metadata"]["name"] for r in run(build).of_type("ConfigMap")] == ["first", "first-suffix"]


def test_an_error_of_the_program_is_the_callers():
    def build():
        config_map("first")
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        run(build)


def test_an_error_inside_apply_is_the_callers():
    def build():
        config_map("first").metadata["name"].apply(int)

    with pytest.raises(ValueError, match="invalid literal"):
        run(build)


def test_one_program_does_not_see_another():
    run(lambda: config_map("first"), config={"inference-platform:key": "a"})
    recording = run(lambda: config_map("second", ignore_changes=["data"]))
    assert [(r.name, r.ignore_changes) for r in recording.resources] == [("second", ("data",))]
    with pytest.raises(RuntimeError, match="no current event loop"):
        asyncio.get_event_loop_policy().get_event_loop()


def test_configuration_stack_and_preview_reach_the_program():
    seen = []

    def build():
        seen.append((pulumi.Config().get("key"), pulumi.get_stack(), pulumi.runtime.is_dry_run()))

    run(build, config={"inference-platform:key": "value"}, stack="dev", preview=True)
    run(build)
    assert seen == [("value", "dev", True), (None, "test", False)]


def test_calls_of_provider_functions_are_recorded_and_answered():
    answers = []

    def build():
        answers.append(pulumi.runtime.invoke("aws:index:region", {"id": 1}).value)

    recording = run(build, invoke_results={"aws:index:region": {"name": "eu-north-1"}})
    assert answers == [{"name": "eu-north-1"}]
    assert [(call.token, call.args) for call in recording.invokes] == [("aws:index:region", {"id": 1})]


def test_nothing_of_the_users_surroundings_is_visible():
    assert not [name for name in os.environ if name.startswith(("KUBE", "AWS_ACCESS", "PULUMI_"))]
    assert not os.path.exists(os.path.expanduser("~/.kube/config"))  # noqa: PTH110, PTH111  what clients themselves do
