"""Values we set are values the charts read: a chart takes a misspelt key without a word."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from components.addons.istio_values import IstioImages, build_base_values, build_istiod_values
from components.addons.spec import IstioSpec
from components.traffic.gateway_manifest import build_gateway_values
from components.traffic.spec import GatewaySpec

LOCAL = IstioSpec.model_validate({"source": {"kind": "module"}})
IMAGES = IstioImages(pilot="localhost/inference-platform/pilot:a1", proxyv2="localhost/inference-platform/proxyv2:b2")
SERVICES: list[dict[str, Any]] = [
    {"type": "NodePort", "nodePort": 30080},
    {"type": "LoadBalancer", "annotations": {"example.com/scheme": "internal"}},
    {"type": "ClusterIP"},
]
# Read by the templates, but only mentioned in a comment of values.yaml, or not at all.
READ_BY_TEMPLATES_ONLY = {("base", "validationFailurePolicy"), ("global", "imagePullPolicy"), ("resources", "limits")}


def unknown_keys(values: Mapping[str, Any], defaults: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths that are no default of the chart's; below an empty mapping anything goes, as in `env`."""
    for key, value in values.items():
        here = (*path, key)
        if key not in defaults:
            yield here
        elif isinstance(value, Mapping) and isinstance(defaults[key], Mapping) and defaults[key]:
            yield from unknown_keys(value, defaults[key], here)


def gateway_values(service: Mapping[str, Any], replicas: int = 1) -> dict[str, Any]:
    spec = GatewaySpec.model_validate({"domain": "inference.test", "service": service, "replicas": replicas})
    return build_gateway_values(spec, [200], 30)


@pytest.mark.parametrize("images", [IMAGES, None])
def test_every_value_of_the_control_plane_is_one_its_chart_reads(chart_defaults, images):
    unknown = set(unknown_keys(build_istiod_values(LOCAL, images), chart_defaults("istiod")))
    assert unknown <= READ_BY_TEMPLATES_ONLY


def test_every_value_of_the_definitions_is_one_their_chart_reads(chart_defaults):
    assert set(unknown_keys(build_base_values(), chart_defaults("istio-base"))) <= READ_BY_TEMPLATES_ONLY


@pytest.mark.parametrize("chart", ["istio-base", "istiod"])
def test_values_missing_from_the_defaults_are_read_by_a_template(charts, chart):
    text = "".join(file.read_text(encoding="utf-8") for file in (charts[chart] / "templates").iterdir())
    assert ".Values.base.validationFailurePolicy" in text


@pytest.mark.parametrize("service", SERVICES, ids=[service["type"] for service in SERVICES])
@pytest.mark.parametrize("replicas", [1, 2])
def test_the_gateways_values_meet_the_charts_own_schema(charts, chart_defaults, service, replicas):
    values = gateway_values(service, replicas)
    Draft202012Validator(json.loads((charts["istio-gateway"] / "values.schema.json").read_text(encoding="utf-8"))).validate(values)
    # Annotations of pods are ours to name.
    assert {path[:-1] for path in unknown_keys(values, chart_defaults("istio-gateway"))} <= {("podAnnotations",)}


def test_the_check_itself_finds_a_misspelt_value(chart_defaults):
    assert set(unknown_keys({"replicaCuont": 1, "global": {"proxy": {"imgae": "x"}}}, chart_defaults("istiod"))) == {
        ("replicaCuont",),
        ("global", "proxy", "imgae"),
    }
