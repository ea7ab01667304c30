"""Istio's control plane: sources, values, order."""

import pulumi
import pulumi_kubernetes as k8s
import pytest
from pydantic import ValidationError

from components.addons.charts import chart_ref
from components.addons.istio import IstioAddon, IstioAddonArgs
from components.addons.istio_values import IstioImages, build_base_values, build_istiod_values
from components.addons.spec import ChartSource, IstioSpec
from components.core.chart import ChartRef
from components.errors import AssetError, ManifestError
from tests.engine import run

LOCAL = IstioSpec.model_validate({"source": {"kind": "module"}})
IMAGES = IstioImages(pilot="localhost/inference-platform/pilot:a1", proxyv2="localhost/inference-platform/proxyv2:b2")


def test_the_source_has_no_default():
    with pytest.raises(ValidationError, match="source"):
        IstioSpec.model_validate({})


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "chart", "repository": "https://charts.example.com"},
        {"kind": "chart", "repository": "https://charts.example.com", "version": "1.x"},
        {"kind": "chart", "repository": "https://charts.example.com", "version": ">=1.2.3"},
        {"kind": "chart", "repository": "https://charts.example.com", "version": "latest"},
        {"kind": "chart", "repository": "charts.example.com", "version": "1.2.3"},
        {"kind": "module", "version": "1.2.3"},
        {"kind": "git"},
    ],
)
def test_a_chart_source_is_pinned_to_one_version_of_one_repository(source):
    with pytest.raises(ValidationError, match="source"):
        IstioSpec.model_validate({"source": source})


def test_the_module_means_the_local_directory_and_a_repository_the_published_chart():
    assert chart_ref(LOCAL.source, "gateway", "istio-gateway", {"istio-gateway": "/charts/gateway"}) == ChartRef(chart="/charts/gateway")
    remote = ChartSource(kind="chart", repository="https://charts.example.com", version="1.2.3")
    assert chart_ref(remote, "gateway", "istio-gateway", {}) == ChartRef(chart="gateway", version="1.2.3", repository="https://charts.example.com")
    oci = ChartSource(kind="chart", repository="oci://registry.example.com/charts/", version="1.2.3")
    assert chart_ref(oci, "gateway", "istio-gateway", {}) == ChartRef(chart="oci://registry.example.com/charts/gateway", version="1.2.3")


def test_a_local_chart_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(AssetError, match=r"'istio-gateway'; known: istiod"):
        chart_ref(LOCAL.source, "gateway", "istio-gateway", {"istiod": "/charts/istiod"})


def test_local_images_are_whole_references_and_come_with_what_a_plain_envoy_needs():
    values = build_istiod_values(LOCAL, IMAGES)
    assert values["image"] == IMAGES.pilot
    assert values["global"]["proxy"]["image"] == IMAGES.proxyv2
    assert values["env"]["PILOT_ENABLE_METADATA_EXCHANGE"] == "false"
    assert values["env"]["PILOT_ENABLE_ALPN_FILTER"] == "false"


def test_without_local_images_the_charts_own_are_used_with_istios_own_filters():
    values = build_istiod_values(LOCAL, None)
    assert not {"image", "global", "hub", "tag"} & values.keys()
    assert not {"PILOT_ENABLE_METADATA_EXCHANGE", "PILOT_ENABLE_ALPN_FILTER"} & values["env"].keys()


def test_an_image_the_chart_would_put_its_hub_around_is_rejected():
    with pytest.raises(ManifestError, match="'pilot:a1' is no whole reference"):
        IstioImages(pilot="pilot:a1", proxyv2=IMAGES.proxyv2)


def test_metrics_are_envoys_own_for_every_build_of_the_proxy():
    for images in (IMAGES, None):
        values = build_istiod_values(LOCAL, images)
        assert values["telemetry"] == {"enabled": False}
        assert values["meshConfig"] == {"enablePrometheusMerge": False}


def test_both_webhooks_start_as_istiod_would_leave_them_so_that_nothing_drifts():
    assert build_base_values()["base"]["validationFailurePolicy"] == "Fail"
    assert build_istiod_values(LOCAL, IMAGES)["base"]["validationFailurePolicy"] == "Fail"


def test_a_route_change_reaches_the_proxies_before_the_endpoints_of_a_leaving_version_are_gone():
    env = build_istiod_values(LOCAL, IMAGES)["env"]
    assert (env["PILOT_DEBOUNCE_AFTER"], env["PILOT_DEBOUNCE_MAX"]) == ("20ms", "300ms")


def test_istiod_starts_after_what_it_looks_for_only_once():
    """Started without the injector's ConfigMap, it never serves the webhook that the gateway's pods need."""
    annotations = build_istiod_values(LOCAL, IMAGES)["deploymentAnnotations"]
    first = annotations["config.kubernetes.io/depends-on"].split(",")
    assert "/namespaces/istio-system/ConfigMap/istio-sidecar-injector" in first


def build():
    cluster = pulumi.ResourceOptions(providers=[k8s.Provider("cluster", kubeconfig="{}", context="x")])
    IstioAddon(
        "istio",
        IstioAddonArgs(spec=LOCAL, base_chart=ChartRef(chart="/charts/base"), istiod_chart=ChartRef(chart="/charts/istiod"), images=IMAGES),
        cluster,
    )


def test_the_definitions_come_before_the_control_plane_and_the_namespace_before_both():
    recording = run(build)
    namespace = recording.one("Namespace")
    charts = {chart.inputs["name"]: chart for chart in recording.of_type("Chart")}
    base, istiod = charts["istio-base"], charts["istiod"]
    assert namespace.urn in base.dependencies
    assert base.urn in istiod.dependencies


def test_everything_carries_the_explicit_provider_and_hangs_below_the_component():
    """pulumi/pulumi-kubernetes#1853."""
    recording = run(build)
    provider = next(resource.urn for resource in recording.resources if resource.type == "pulumi:providers:kubernetes")
    made = [*recording.kubernetes, *recording.of_type("Chart")]
    assert len(made) == 3
    assert {resource.provider_urn for resource in made} == {provider}
    assert {resource.parent.split("::")[2].rpartition("$")[2] for resource in made} == {"inference:addons:IstioAddon"}
