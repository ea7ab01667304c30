"""Objects of servers and of the GPU simulator are what Kubernetes allows."""

from dataclasses import replace

import kubernetes_validate
import pytest

from components import labels
from components.batch import job_manifest as batch
from components.core.rollout import ReplicaRange
from components.devices.simulated_gpus_manifest import build_simulator
from components.devices.spec import SimulatedGpusSpec
from components.front import front_manifest as front
from components.front.spec import FrontSpec
from components.inference import model_cache_manifest as cache
from components.inference import triton_manifest as triton
from components.inference.network_manifest import GatewayPods, RoleUser, build_network_policies
from components.inference.network_spec import NetworkSpec
from components.inference.repository_manifest import CacheUse
from tests.unit.components.batch.jobs import VOLUME_IN, VOLUME_OUT
from tests.unit.components.batch.jobs import plan as plan_of_job
from tests.unit.components.inference.models import IDENTITY, loaded, plan
from tests.unit.components.inference.test_repository_manifest import CACHE, SECRET, spec_of, store, volume
from tests.unit.components.inference.test_triton_manifest import GPU, gpu_pool

PLANS = {
    "cpu": plan(),
    "scaled-from-zero": plan(replicas=ReplicaRange.scaled(0, 3)),
    "without-shared-memory": plan(python_backend=False),
    "gpu": plan(GPU, pool=gpu_pool(taints=[{"key": "nvidia.com/gpu"}], labels={"pool": "gpus"})),
}
FRONT = front.FrontPlan(identity=IDENTITY, spec=FrontSpec(), settings="{}")
NETWORK_SPEC = NetworkSpec.model_validate(
    {
        "callers": [{"namespace": "shop"}],
        "metricsFrom": [{"namespace": "monitoring", "podLabels": {"app": "prometheus"}}],
        "destinations": [{"cidr": "10.20.0.0/16"}],
    }
)
NETWORK = {
    policy["metadata"]["name"]: policy
    for policy in build_network_policies(
        "inference",
        GatewayPods(namespace="gateway", selector={"istio": "gateway"}, port=80),
        NETWORK_SPEC,
        roles=[RoleUser(label=labels.MODEL, value="magika")],
    )
}
OBJECTS = {
    "service": ("v1", "Service", triton.build_service(IDENTITY, awaited=True)),
    "account": ("v1", "ServiceAccount", triton.build_service_account(IDENTITY)),
    "simulator": ("apps/v1", "DaemonSet", build_simulator(SimulatedGpusSpec(count=4), "image:1")),
    **{f"deployment-{name}": ("apps/v1", "Deployment", triton.build_deployment(of, "image:1")) for name, of in PLANS.items()},
    "fetching": ("apps/v1", "Deployment", {"metadata": {"name": "magika"}, "spec": spec_of(store(**SECRET), CacheUse(claim="c", size_gib=1))}),
    "volume": ("apps/v1", "Deployment", {"metadata": {"name": "magika"}, "spec": spec_of(volume(path="models"))}),
    "cache-volume": ("v1", "PersistentVolume", cache.build_cache_volume(CACHE, "inference")),
    "cache-claim": ("v1", "PersistentVolumeClaim", cache.build_cache_claim(CACHE, "inference")),
    "cache-daemon": ("apps/v1", "DaemonSet", cache.build_cache_daemon(CACHE, "inference", None, "image:1")),
    "config": ("v1", "ConfigMap", triton.build_config_map(PLANS["cpu"])),
    "batch-job": ("batch/v1", "Job", batch.build_job(plan_of_job(shards=4, parallelism=2, objectStore={"secret": "store"}), "image:1")),
    "batch-job-volume": ("batch/v1", "Job", batch.build_job(plan_of_job(input=VOLUME_IN, output=VOLUME_OUT), "image:1")),
    "batch-account": ("v1", "ServiceAccount", batch.build_service_account(plan_of_job())),
    "front-deployment": ("apps/v1", "Deployment", front.build_deployment(FRONT, "image:1")),
    "front-service": ("v1", "Service", front.build_service(FRONT)),
    "front-account": ("v1", "ServiceAccount", front.build_service_account(FRONT)),
    "front-config": ("v1", "ConfigMap", front.build_config_map(FRONT)),
    "front-budget": ("policy/v1", "PodDisruptionBudget", front.build_disruption_budget(FRONT)),
    "config-with-warmup": (
        "v1",
        "ConfigMap",
        triton.build_config_map(replace(PLANS["cpu"], models=(replace(loaded(), warmup_files={"check": b"a"}),))),
    ),
    **{f"network-{name}": ("networking.k8s.io/v1", "NetworkPolicy", policy) for name, policy in NETWORK.items()},
    "budget": ("policy/v1", "PodDisruptionBudget", triton.build_disruption_budget(PLANS["cpu"])),
}


@pytest.mark.parametrize(("api_version", "kind", "manifest"), OBJECTS.values(), ids=OBJECTS)
def test_objects_are_allowed(kubernetes_version, api_version, kind, manifest):
    kubernetes_validate.validate({"apiVersion": api_version, "kind": kind, **manifest}, kubernetes_version, strict=True)


def test_a_misspelt_key_would_be_seen(kubernetes_version):
    """Strict: the check is one that can fail."""
    manifest = triton.build_service(IDENTITY, awaited=True)
    manifest["spec"]["selectors"] = manifest["spec"].pop("selector")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({"apiVersion": "v1", "kind": "Service", **manifest}, kubernetes_version, strict=True)
