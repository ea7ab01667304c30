"""Which object stores the network lets a stack's pods reach."""

from typing import Any

import pytest

from components import labels
from components.core.object_store import ObjectStoreAccessSpec
from components.errors import ConfigError
from components.inference.network_manifest import build_network_policies
from stacks.network import namespace_args, role_users, store_users
from stacks.stores import ports
from tests.documents import changed, document
from tests.network import Pod, reaches
from tests.unit.stacks.test_loader import loaded

STORE = {"kind": "objectStore", "bucket": "models", "endpoint": "http://store.test:9000"}


def test_a_stack_that_serves_from_its_image_reaches_no_store() -> None:
    assert list(store_users(loaded(changed("cluster.namespace", "inference")))) == []


def test_a_model_from_an_object_store_reaches_its_port() -> None:
    [use] = store_users(loaded(changed("models.magika.repository", STORE)))
    assert (use.label, use.value, use.ports) == ("inference-platform/model", "magika", {9000})


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


AWS_STORE = {"kind": "objectStore", "bucket": "models"}
ROLE = {"serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/models"}}
SERVER, OTHER, JOB = (Pod("inference", each) for each in (labels.model("magika"), labels.model("ocr"), labels.batch("nightly")))
S3 = Pod("", address="203.0.113.7")
METADATA, POD_IDENTITY, POD_IDENTITY_6 = (Pod("", address=each) for each in ("169.254.169.254", "169.254.170.23", "fd00:ec2::23"))


def policies(config: dict[str, Any]) -> list[dict[str, Any]]:
    args = namespace_args(loaded(config))
    return build_network_policies(args.namespace, args.gateway, args.network, args.stores, args.roles)


@pytest.mark.parametrize(
    ("credentials", "on_the_node"), [({}, True), ({"secret": "models"}, False), (ROLE, False)], ids=["neither", "secret", "role"]
)
@pytest.mark.parametrize("destinations", [[], [{"cidr": "203.0.113.0/24"}]], ids=["any address", "destinations"])
def test_a_server_reaches_its_store_and_where_its_credentials_come_from(
    credentials: dict[str, Any], on_the_node: bool, destinations: list[dict[str, Any]]
) -> None:
    config = changed("models.magika.repository", {**AWS_STORE, **credentials})
    config["inference-platform:cluster"]["network"] = {"destinations": destinations}
    rules = policies(config)
    assert reaches(rules, SERVER, S3, 443)
    for source in (METADATA, POD_IDENTITY, POD_IDENTITY_6):
        assert reaches(rules, SERVER, source, 80) is on_the_node
        assert not reaches(rules, OTHER, source, 80)
        assert not reaches(rules, JOB, source, 80)
    assert not reaches(rules, SERVER, S3, 80)


@pytest.mark.parametrize(("access", "on_the_node"), [(None, True), ({"region": "eu-west-1"}, True), ({"secret": "documents"}, False), (ROLE, False)])
def test_a_batch_job_reaches_where_its_credentials_come_from(access: dict[str, Any] | None, on_the_node: bool) -> None:
    place = {"kind": "objectStore", "bucket": "documents"}
    job = {"model": "magika", "input": {**place, "prefix": "in"}, "output": {**place, "prefix": "out"}, "objectStore": access}
    config = document()
    config["inference-platform:batchJobs"] = {"nightly": {key: value for key, value in job.items() if value is not None}}
    rules = policies(config)
    assert reaches(rules, JOB, S3, 443)
    assert reaches(rules, JOB, METADATA, 80) is on_the_node
    assert reaches(rules, JOB, POD_IDENTITY, 80) is on_the_node
    assert not reaches(rules, SERVER, METADATA, 80)


@pytest.mark.parametrize(
    ("store", "port", "refused"),
    [
        (AWS_STORE, 9000, True),
        (AWS_STORE, 443, False),
        (STORE, 9000, False),
        # The pods' own port, which a Service of the endpoint's port may stand before.
        (STORE, 9001, False),
        ({**STORE, **ROLE}, 9000, True),
    ],
)
def test_destinations_that_leave_aws_out_are_refused_where_it_is_needed(store: dict[str, Any], port: int, refused: bool) -> None:
    config = changed("models.magika.repository", store)
    config["inference-platform:cluster"]["network"] = {"destinations": [{"cidr": "203.0.113.0/24", "port": port}]}
    if not refused:
        loaded(config)
        return
    with pytest.raises(ConfigError, match=r"cluster.network.destinations.* lists no addresses at port 443.*models.magika.repository needs them"):
        loaded(config)


def test_a_stack_without_a_store_opens_no_credentials() -> None:
    assert list(role_users(loaded(document()))) == []


def test_a_job_named_like_a_model_is_no_second_use_of_the_same_pods() -> None:
    places = {key: {"kind": "objectStore", "bucket": "documents", "prefix": key} for key in ("input", "output")}
    role = {"endpoint": "http://store.test:9001", "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "x"}}
    config = changed("models.magika.repository", STORE)
    config["inference-platform:batchJobs"] = {"magika": {"model": "magika", **places, "objectStore": role}}
    built = [policy for policy in policies(config) if policy["metadata"]["name"].startswith("store")]
    assert [policy["metadata"]["name"] for policy in built] == ["store-batch-magika", "store-model-magika"]
    assert [entry["port"] for entry in built[0]["spec"]["egress"][0]["ports"]] == [443, 9001]
