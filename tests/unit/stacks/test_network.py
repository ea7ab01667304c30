"""Which object stores the network lets a stack's pods reach."""

import pytest

from components.core.object_store import ObjectStoreAccessSpec
from stacks.network import ports, store_users
from tests.documents import changed
from tests.unit.stacks.test_loader import loaded

STORE = {"kind": "objectStore", "bucket": "models", "endpoint": "http://store.test:9000"}


def test_a_stack_that_serves_from_its_image_reaches_no_store() -> None:
    assert list(store_users(loaded(changed("cluster.namespace", "inference")))) == []


def test_a_model_from_an_object_store_reaches_its_port() -> None:
    [use] = store_users(loaded(changed("models.magika.repository", STORE)))
    assert (use.label, use.value, use.port) == ("inference-platform/model", "magika", 9000)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {443}),
        ({"endpoint": "https://store.test"}, {443}),
        ({"endpoint": "http://store.test"}, {80}),
        ({"endpoint": "http://store.test:9000", "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "x"}}, {9000, 443}),
    ],
)
def test_the_ports_are_those_of_the_endpoint_and_of_the_credentials(values: dict[str, object], expected: set[int]) -> None:
    assert ports(ObjectStoreAccessSpec.model_validate(values)) == expected
