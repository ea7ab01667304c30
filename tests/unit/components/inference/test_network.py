"""Who reaches whom in the models' namespace: the rendered policies under Kubernetes' own rules."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from components import labels
from components.inference.network_manifest import GatewayPods, StoreUser, build_network_policies
from components.inference.network_spec import NetworkSpec
from components.inference.triton_manifest import build_deployment
from components.traffic.gateway_manifest import HTTP_SERVER_PORT, NAMESPACE, SELECTOR
from tests.network import Pod, reaches, selects
from tests.unit.components.inference.models import plan

MODELS = "inference"
GATEWAY = GatewayPods(namespace=NAMESPACE, selector=SELECTOR, port=HTTP_SERVER_PORT)
SERVER = Pod(MODELS, build_deployment(plan(), "image")["spec"]["template"]["metadata"]["labels"])
FRONT = Pod(MODELS, labels.front("magika"))
JOB = Pod(MODELS, labels.batch("nightly"))
STRANGER = Pod(MODELS, {"app": "debug"})
GATEWAY_POD = Pod(NAMESPACE, {**SELECTOR, "app": "inference-gateway"})
DNS = Pod("kube-system", {"k8s-app": "kube-dns"})
ISTIOD = Pod("istio-system", {"app": "istiod", "istio": "pilot"})
API_SERVER = Pod("kube-system", {"component": "kube-apiserver"})
PROMETHEUS = Pod("monitoring", {"app.kubernetes.io/name": "prometheus"})
OUTSIDE = Pod("", address="203.0.113.7")
STORE = Pod("", address="10.20.0.9")
PORTS = (8000, 8001, 8002)


def policies(**values):
    return build_network_policies(MODELS, GATEWAY, NetworkSpec.model_validate(values))


def open_pairs(rules, sources, targets, ports):
    return {(source, target, port) for source, target, port in product(sources, targets, ports) if reaches(rules, POD[source], POD[target], port)}


POD = {
    "server": SERVER,
    "front": FRONT,
    "job": JOB,
    "stranger": STRANGER,
    "gateway": GATEWAY_POD,
    "dns": DNS,
    "istiod": ISTIOD,
    "api": API_SERVER,
    "prometheus": PROMETHEUS,
    "outside": OUTSIDE,
    "store": STORE,
}


def test_the_gateway_alone_reaches_a_server_and_only_to_ask_it():
    assert open_pairs(policies(), POD, ["server"], PORTS) == {("gateway", "server", 8000), ("gateway", "server", 8001)}


def test_a_pod_that_merely_lies_in_the_gateways_namespace_is_no_gateway():
    assert not reaches(policies(), Pod(NAMESPACE, {"app": "other"}), SERVER, 8001)


def test_a_pod_labelled_like_the_gateway_elsewhere_is_no_gateway():
    assert not reaches(policies(), Pod("default", GATEWAY_POD.labels), SERVER, 8001)
    assert not reaches(policies(), Pod(MODELS, GATEWAY_POD.labels), SERVER, 8001)


def test_fronts_and_batch_jobs_ask_through_the_gateway():
    """Past it neither weights nor limits would hold for them."""
    reached = open_pairs(policies(), ["front", "job"], POD, (*PORTS, 80, 443, 8080))
    assert reached == {("front", "gateway", 80), ("job", "gateway", 80)}
    assert open_pairs(policies(), POD, ["front"], (8080, 8081)) == {("gateway", "front", 8080)}


def test_names_and_certificates_can_be_had_and_nothing_else():
    for pod in (SERVER, FRONT, JOB, STRANGER):
        assert reaches(policies(), pod, DNS, 53, "UDP")
        assert reaches(policies(), pod, DNS, 53)
        assert reaches(policies(), pod, ISTIOD, 15_012)
    assert open_pairs(policies(), ["server", "stranger"], POD, (443, 6443, 80, 8000, 9000)) == set()
    assert not reaches(policies(), SERVER, OUTSIDE, 443)
    assert not reaches(policies(), SERVER, DNS, 443)


def test_a_pod_that_nobody_knows_is_closed_in_both_directions():
    assert open_pairs(policies(), POD, ["stranger"], (80, 8000, 8080)) == set()


def test_metrics_are_read_by_whom_the_stack_names():
    named = policies(metricsFrom=[{"namespace": "monitoring", "podLabels": {"app.kubernetes.io/name": "prometheus"}}])
    assert open_pairs(named, POD, ["server"], [8002]) == {("prometheus", "server", 8002)}
    assert open_pairs(named, ["prometheus"], ["server", "front"], (8000, 8001, 8002, 8080, 8081)) == {
        ("prometheus", "server", 8002),
        ("prometheus", "front", 8081),
    }
    assert not reaches(named, Pod("monitoring", {"app": "grafana"}), SERVER, 8002)


def test_callers_of_a_whole_namespace_may_ask_and_read_no_metrics():
    named = policies(callers=[{"namespace": "shop"}])
    assert [port for port in PORTS if reaches(named, Pod("shop", {"any": "pod"}), SERVER, port)] == [8000, 8001]
    assert not reaches(named, Pod("shop2"), SERVER, 8000)


def test_an_object_store_is_reached_at_its_addresses_and_port():
    named = policies(destinations=[{"cidr": "10.20.0.0/16", "port": 9000}])
    assert reaches(named, SERVER, STORE, 9000)
    assert not reaches(named, SERVER, STORE, 443)
    assert not reaches(named, SERVER, OUTSIDE, 9000)


def test_without_addresses_only_the_pods_that_use_a_store_reach_its_port():
    rules = build_network_policies(MODELS, GATEWAY, NetworkSpec(), [StoreUser(label=labels.MODEL, value="magika", ports={9000})])
    assert reaches(rules, SERVER, OUTSIDE, 9000)
    assert not reaches(rules, SERVER, OUTSIDE, 443)
    assert not any(reaches(rules, pod, OUTSIDE, 9000) for pod in (STRANGER, JOB, Pod(MODELS, labels.model("other"))))
    named = NetworkSpec.model_validate({"destinations": [{"cidr": "10.20.0.0/16", "port": 9000}]})
    narrowed = build_network_policies(MODELS, GATEWAY, named, [StoreUser(label=labels.MODEL, value="magika", ports={9000})])
    assert reaches(narrowed, SERVER, STORE, 9000)
    assert not reaches(narrowed, SERVER, OUTSIDE, 9000)


def test_a_model_and_a_batch_job_of_one_name_have_a_policy_each_and_all_their_ports():
    uses = [StoreUser(label=labels.MODEL, value="nightly", ports={443, 9000}), StoreUser(label=labels.BATCH, value="nightly", ports={9001})]
    rules = build_network_policies(MODELS, GATEWAY, NetworkSpec(), uses)
    names = [rule["metadata"]["name"] for rule in rules]
    assert len(set(names)) == len(names)
    model, job = Pod(MODELS, labels.model("nightly")), Pod(MODELS, labels.batch("nightly"))
    assert [port for port in (443, 9000, 9001) if reaches(rules, model, OUTSIDE, port)] == [443, 9000]
    assert [port for port in (443, 9000, 9001) if reaches(rules, job, OUTSIDE, port)] == [9001]


@given(st.sampled_from(sorted(POD)), st.integers(1, 65_535), st.sampled_from(["TCP", "UDP", "SCTP"]))
def test_no_port_of_a_server_is_open_but_for_the_two_of_the_gateway(source, port, protocol):
    expected = source == "gateway" and port in {8000, 8001} and protocol == "TCP"
    assert reaches(policies(), POD[source], SERVER, port, protocol) == expected


def test_without_the_policies_everybody_would_reach_everybody():
    """So the check is one that can fail; and a policy that lists no peer at all would open to everyone."""
    assert reaches([], OUTSIDE, SERVER, 8000)
    everyone = {
        "metadata": {"namespace": MODELS},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [], "ports": [{"port": 8000}]}]},
    }
    assert reaches([everyone], OUTSIDE, SERVER, 8000)


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, False),
    ],
)
def test_selectors_fit_as_kubernetes_says(selector, fits):
    assert selects(selector, {"a": "1"}) is fits


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"callers": [{"namespace": "Shop"}]}, "should match pattern"),
        ({"callers": [{"namespace": "shop", "podLabels": {"not a label": "x"}}]}, "should match pattern"),
        ({"destinations": [{"cidr": "10.20.0.9/16"}]}, "has host bits set; write a block such as"),
        ({"destinations": [{"cidr": "store.example.com"}]}, "does not appear to be an IPv4 or IPv6 network; write a block such as"),
        ({"destinations": [{"cidr": "10.0.0.0/8", "port": 0}]}, "greater than or equal to 1"),
        ({"ingress": []}, "Extra inputs are not permitted"),
    ],
)
def test_exceptions_that_cannot_be_are_refused_with_the_reason(values, reason):
    with pytest.raises(ValidationError, match=reason):
        NetworkSpec.model_validate(values)
