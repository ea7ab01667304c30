"""Models that are not in the image: the init step, the volumes, the claim that stands for a node's folder."""

import pytest
from pydantic import ValidationError

from components.core.model_repository import ImageRepositorySpec, ModelCacheSpec, NodeCache, ObjectStoreRepositorySpec, VolumeRepositorySpec
from components.core.node_pool import GpuNodePoolSpec
from components.inference.model_cache import ModelCache, ModelCacheArgs
from components.inference.model_cache_manifest import build_cache_claim, build_cache_daemon, build_cache_volume
from components.inference.plan import plan_versions
from components.inference.repository_manifest import CacheUse, RepositoryUse, volume_mib
from components.inference.triton_manifest import build_deployment, build_service_account
from tests.engine import run
from tests.unit.components.inference.models import FILES, IDENTITY, loaded, server, version

STORE = {"kind": "objectStore", "bucket": "models", "prefix": "prod/triton", "endpoint": "http://minio:9000", "region": "eu-central-1"}
SECRET = {"secret": "model-store"}
CACHE = NodeCache(pool=None, spec=ModelCacheSpec(path="/mnt/nvme/models", size_gib=50))


def store(**values):
    return ObjectStoreRepositorySpec.model_validate({**STORE, **values})


def volume(**values):
    return VolumeRepositorySpec.model_validate({"kind": "volume", "claim": "models", **values})


def spec_of(repository, cache=None, **footprint):
    """Deployment of a version whose files come from `repository`."""
    use = RepositoryUse(spec=repository, cache=cache)
    (plan,) = plan_versions(IDENTITY, server(), None, (version(**footprint),), use)
    return build_deployment(plan, "image:1", "apps:1")["spec"]


def pod(repository, cache=None, **footprint):
    return spec_of(repository, cache, **footprint)["template"]["spec"]


def named(items):
    return {item["name"]: item for item in items}


def test_a_model_in_the_image_has_no_init_step_and_no_volume_of_its_own():
    assert "initContainers" not in pod(ImageRepositorySpec())
    assert "repository" not in named(pod(ImageRepositorySpec())["volumes"])


def test_every_model_of_the_deployment_is_fetched_before_the_server_starts():
    [init] = pod(store(), steps=(loaded("decode"),))["initContainers"]
    assert init["image"] == "apps:1"
    assert init["args"][:3] == ["serving.repository", "fetch", "s3://models/prod/triton"]
    assert init["args"][-2:] == [f"magika_files/1@sha256:{FILES}", f"decode/1@sha256:{FILES}"]
    options = dict(zip(init["args"][3:-2:2], init["args"][4:-2:2], strict=True))
    assert options == {"--to": "/repository", "--limit-mib": "23", "--endpoint": "http://minio:9000", "--region": "eu-central-1"}


def test_the_server_sees_the_versions_read_only_and_its_config_still_lies_beside_them():
    [container] = pod(store(), steps=(loaded("decode"),))["containers"]
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    for name in ("magika_files", "decode"):
        assert mounts[f"/models/{name}/1"] == {
            "name": "repository",
            "mountPath": f"/models/{name}/1",
            "subPath": f"{name}/1",
            "readOnly": True,
        }
        assert mounts[f"/models/{name}/config.pbtxt"]["name"] == "model-config"


def test_the_volume_is_sized_by_the_models_files_and_the_node_must_have_the_room():
    assert volume_mib((loaded(),)) == 20
    manifest = pod(store())
    assert named(manifest["volumes"])["repository"] == {"name": "repository", "emptyDir": {"sizeLimit": "20Mi"}}
    assert manifest["initContainers"][0]["resources"]["requests"]["ephemeral-storage"] == "20Mi"


def test_credentials_reach_the_init_step_alone():
    manifest = pod(store(**SECRET))
    env = {entry["name"]: entry["valueFrom"]["secretKeyRef"] for entry in manifest["initContainers"][0]["env"]}
    assert env["AWS_SECRET_ACCESS_KEY"] == {"name": "model-store", "key": "AWS_SECRET_ACCESS_KEY"}
    assert env["AWS_SESSION_TOKEN"]["optional"] is True
    assert "model-store" not in str(manifest["containers"])
    assert pod(store())["initContainers"][0]["env"] == []


def test_a_role_is_an_annotation_of_the_service_account():
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/models"}
    use = RepositoryUse(spec=store(serviceAccountAnnotations=role))
    assert build_service_account(IDENTITY, use.account_annotations)["metadata"]["annotations"] == role
    assert "annotations" not in build_service_account(IDENTITY)["metadata"]


def test_a_volume_is_compared_before_the_server_starts_and_nobody_can_write_to_it():
    manifest = pod(volume(path="prod/triton"))
    [init] = manifest["initContainers"]
    assert init["args"] == ["serving.repository", "verify", "/repository", f"magika_files/1@sha256:{FILES}"]
    assert init["volumeMounts"] == [{"name": "repository", "mountPath": "/repository", "readOnly": True, "subPath": "prod/triton"}]
    assert named(manifest["volumes"])["repository"]["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
    assert [mount["subPath"] for mount in manifest["containers"][0]["volumeMounts"] if mount["name"] == "repository"] == [
        "prod/triton/magika_files/1"
    ]


def test_a_rollout_waits_for_the_fetch_too():
    deadlines = [spec_of(repository)["progressDeadlineSeconds"] for repository in (ImageRepositorySpec(), store(fetchSeconds=900))]
    assert deadlines[1] - deadlines[0] == 900


def test_the_pod_meets_the_restricted_standard_with_a_node_cache():
    """Pod Security Standards, restricted: of these kinds of volume only; a hostPath in the pod would be refused."""
    manifest = pod(store(), CacheUse(claim=CACHE.claim, size_gib=50))
    kinds = {next(key for key in entry if key != "name") for entry in manifest["volumes"]}
    assert kinds <= {"configMap", "emptyDir", "persistentVolumeClaim"}
    [init] = manifest["initContainers"]
    assert init["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert init["args"][-5:-1] == ["--cache", "/cache", "--cache-gib", "50"]
    assert {"name": "model-cache", "mountPath": "/cache"} in init["volumeMounts"]
    assert "model-cache" not in named(manifest["containers"][0]["volumeMounts"])


def test_the_claim_is_bound_to_a_folder_of_whatever_node_the_pod_is_on():
    made = build_cache_volume(CACHE, "inference")
    assert made["spec"]["hostPath"] == {"path": "/mnt/nvme/models", "type": "DirectoryOrCreate"}
    assert "nodeAffinity" not in made["spec"]
    claim = build_cache_claim(CACHE, "inference")
    assert made["spec"]["claimRef"]["name"] == claim["metadata"]["name"]
    assert claim["spec"]["volumeName"] == made["metadata"]["name"]
    assert made["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == ""


def test_another_folder_is_another_volume_because_a_volume_cannot_move():
    other = NodeCache(pool=None, spec=ModelCacheSpec(path="/mnt/nvme/other", size_gib=50))
    assert other.claim != CACHE.claim
    assert other.volume("inference") != CACHE.volume("inference")


def test_the_folder_is_prepared_on_the_nodes_of_the_pool():
    pool = labelled({"pool": "a100"})
    template = build_cache_daemon(CACHE, "inference", pool, "apps:1")["spec"]["template"]["spec"]
    assert template["nodeSelector"] == {"pool": "a100"}
    assert template["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN"]}
    everywhere = build_cache_daemon(CACHE, "inference", None, "apps:1", [labelled({})])["spec"]["template"]["spec"]
    assert not {"nodeSelector", "affinity"} & set(everywhere)


def labelled(values):
    return GpuNodePoolSpec.model_validate(
        {"accelerator": "a100", "cardsPerNode": 1, "cardMemoryMib": 81_920, "minNodes": 0, "maxNodes": 1, "labels": values}
    )


def matches(terms, node):
    """Kubernetes documentation, "Node affinity": one term is enough, all expressions of a term hold; NotIn holds without the label too."""
    return any(all(node.get(each["key"]) not in each["values"] for each in term["matchExpressions"]) for term in terms)


@pytest.mark.parametrize(
    ("node", "outside"),
    [
        ({}, True),
        ({"pool": "a100", "site": "one"}, False),
        ({"pool": "a100", "site": "two"}, True),
        ({"site": "one"}, True),
        ({"gpu": "h100"}, False),
        ({"gpu": "l4", "pool": "cpu"}, True),
    ],
)
def test_without_a_pool_the_folder_is_prepared_on_nodes_that_are_in_none(node, outside):
    pools = [labelled({"pool": "a100", "site": "one"}), labelled({"gpu": "h100"})]
    template = build_cache_daemon(CACHE, "inference", None, "apps:1", pools)["spec"]["template"]["spec"]
    node_affinity = template["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert {each["operator"] for term in node_affinity["nodeSelectorTerms"] for each in term["matchExpressions"]} == {"NotIn"}
    assert matches(node_affinity["nodeSelectorTerms"], node) is outside


def test_a_cache_is_a_volume_its_claim_and_the_daemon_that_prepares_the_folder():
    recording = run(lambda: ModelCache("cache", ModelCacheArgs(cache=CACHE, namespace="inference", apps_image="apps:1")))
    assert sorted(resource.type.rpartition(":")[2] for resource in recording.kubernetes) == ["DaemonSet", "PersistentVolume", "PersistentVolumeClaim"]
    assert recording.one("PersistentVolume").urn in recording.one("PersistentVolumeClaim").dependencies
    assert recording.outputs[recording.one("ModelCache").urn] == {"claim": CACHE.claim}


@pytest.mark.parametrize("path", ["models", "/", "/etc/models", "/mnt/../etc", "/mnt/a b", "/usr"])
def test_a_cache_lies_in_no_folder_of_the_system(path):
    with pytest.raises(ValidationError):
        ModelCacheSpec(path=path, size_gib=1)


@pytest.mark.parametrize(
    "values",
    [
        {"endpoint": "http://key:secret@minio:9000"},
        {"endpoint": "minio:9000"},
        {"prefix": "../other"},
        {"prefix": "a" * 513},
        {"region": "a" * 64},
        {"prefix": "/absolute"},
        {"bucket": "Models"},
        {"accessKey": "AKIA"},
        {"secret": "model-store", "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "arn"}},
    ],
)
def test_a_store_that_cannot_be_or_carries_credentials_is_refused(values):
    with pytest.raises(ValidationError):
        store(**values)
