"""Every committed stack previews on the real engine, under the policy pack."""

import pytest

from tests.documents import ENVIRONMENTS
from tests.preview.conftest import MakeProject

pytestmark = pytest.mark.preview

UNCHECKED_VIRTUAL_SERVICE = """
import pulumi_kubernetes as kubernetes
from pulumi import ResourceOptions

provider = kubernetes.Provider("kubernetes", context="inference-platform-local", kubeconfig="")
kubernetes.apiextensions.CustomResource(
    "route",
    api_version="networking.istio.io/v1",
    kind="VirtualService",
    metadata={"name": "route", "namespace": "default"},
    spec={"hosts": ["a"], "http": [{"name": "main", "route": [{"destination": {"host": "a"}, "weight": 90}, {"destination": {"host": "b"}}]}]},
    opts=ResourceOptions(provider=provider),
)
"""


@pytest.mark.parametrize("stack", ENVIRONMENTS)
def test_a_stack_previews_with_its_policies_and_creates_everything(new_project: MakeProject, stack: str) -> None:
    project = new_project(stack)
    result = project.stack.preview("--policy-pack", str(project.root / "stacks" / "policies"))
    assert result.ok, result.log
    assert {operation for operation, _ in result.changes} == {"create"}
    assert any("VirtualService::magika-route" in urn for _, urn in result.changes)


def test_a_virtual_service_that_leaves_things_to_istio_is_blocked_by_the_policy(new_project: MakeProject) -> None:
    project = new_project()
    (project.root / "__main__.py").write_text(UNCHECKED_VIRTUAL_SERVICE)
    assert project.stack.preview().ok
    result = project.stack.preview("--policy-pack", str(project.root / "stacks" / "policies"))
    assert not result.ok
    assert "spec.http[0] (main): destination 1 has no weight" in result.log
    assert "retries.attempts: 0" in result.log
