"""Kubernetes objects of a batch job, as plain dicts."""

import json
from dataclasses import dataclass
from typing import Any

from components import labels
from components.batch.spec import BatchJobSpec, ObjectStorePlaceSpec, VolumePlaceSpec, place_of
from components.core.object_store import credential_variables
from components.core.pods import CONTAINER_SECURITY, cpu_quantity, pod_security
from components.naming import content_hash, k8s_name
from serving.contract import GROUP_ID, USER_ID

CONTAINER = "batch"
MODULE = "serving.batch"
SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
INPUT_PATH, OUTPUT_PATH = "/input", "/output"
# From the end of the longest request until its answer is stored and the lock let go.
STOP_MARGIN_SECONDS = 30
# How long a server may refuse everybody until a pod gives up; at least two requests that time out.
OUTAGE_SECONDS = 600
# Exit codes of serving.batch that another try does not change: a wrong command line, items that have an error for a record, refused. Not among them:
# 1, with which Python itself ends a program that crashed, and what waits for a server, a store or another client.
FINAL_EXIT_CODES = [2, 3, 6]


def job_account(name: str) -> str:
    """Name of the service account of the job with this key, and the beginning of the Job's own."""
    return k8s_name(name, "batch")


@dataclass(frozen=True, kw_only=True)
class BatchJobPlan:
    """A job, planned: `address` and `authority` lead to the model through the gateway, which lets requests of `max_request_mib` pass.

    A request carries at most `max_batch` items, and `priority`.
    """

    name: str
    namespace: str
    spec: BatchJobSpec
    triton_name: str
    address: str
    authority: str
    max_batch: int
    priority: int
    timeout_seconds: int
    max_request_mib: int

    @property
    def account(self) -> str:
        return job_account(self.name)

    def job(self, image: str) -> str:
        """Named after what it runs: the template of a Job cannot change, so a change is another Job."""
        return k8s_name(self.account, content_hash(json.dumps(_spec(self, image), sort_keys=True)))


def build_service_account(plan: BatchJobPlan) -> dict[str, Any]:
    """Identity of the pods: of a role at the object store, if any; no token is mounted."""
    access = plan.spec.object_store
    metadata = _metadata(plan, plan.account)
    if access is not None and access.service_account_annotations:
        metadata["annotations"] = dict(access.service_account_annotations)
    return {"metadata": metadata, "automountServiceAccountToken": False}


def build_job(plan: BatchJobPlan, image: str) -> dict[str, Any]:
    """An indexed Job with a pod for each shard. Pulumi does not wait for its end: an update would last as long as the work."""
    return {"metadata": {**_metadata(plan, plan.job(image)), "annotations": SKIP_AWAIT}, "spec": _spec(plan, image)}


def _spec(plan: BatchJobPlan, image: str) -> dict[str, Any]:
    """A pod that was evicted does not count as failed, one without a server or store, or behind a lock, is tried again, and the next one waits for its end."""
    spec = plan.spec
    return {
        "completionMode": "Indexed",
        "completions": spec.shards,
        "parallelism": spec.parallelism,
        "backoffLimitPerIndex": spec.retries,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailIndex", "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": FINAL_EXIT_CODES}},
            ]
        },
        "ttlSecondsAfterFinished": spec.keep_seconds,
        "template": {"metadata": {"labels": labels.batch(plan.name)}, "spec": _pod(plan, image)},
    }


def _pod(plan: BatchJobPlan, image: str) -> dict[str, Any]:
    volumes, mounts = _volumes(plan.spec)
    memory = f"{plan.spec.memory_mib}Mi"
    return {
        "serviceAccountName": plan.account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": plan.timeout_seconds + STOP_MARGIN_SECONDS,
        "securityContext": pod_security(USER_ID, GROUP_ID),
        "containers": [
            {
                "name": CONTAINER,
                "image": image,
                "args": [MODULE, *build_arguments(plan)],
                "env": _environment(plan.spec),
                "resources": {
                    "requests": {"cpu": cpu_quantity(plan.spec.cpu_request), "memory": memory},
                    "limits": {"cpu": cpu_quantity(plan.spec.cpu_limit), "memory": memory},
                },
                "securityContext": CONTAINER_SECURITY,
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }


def build_arguments(plan: BatchJobPlan) -> list[str]:
    """The command line of `python -m serving.batch`; batch size and priority are named, because the gateway hides the model's config."""
    spec = plan.spec
    arguments = ["run", _path(spec.input, INPUT_PATH), _path(spec.output, OUTPUT_PATH)]
    options = {
        "address": plan.address,
        "authority": plan.authority,
        "model": plan.triton_name,
        "max-batch": plan.max_batch,
        "priority": plan.priority,
        "timeout-seconds": plan.timeout_seconds,
        "outage-seconds": max(OUTAGE_SECONDS, 2 * plan.timeout_seconds),
        "shard": f"/{spec.shards}",
        "in-flight": spec.in_flight,
        "batch-mib": plan.max_request_mib,
        "item-mib": plan.max_request_mib,
        "changed": spec.changed,
    }
    if spec.object_store is not None and spec.object_store.endpoint is not None:
        options["endpoint-url"] = spec.object_store.endpoint
    arguments += [f"--{name}={value}" for name, value in options.items()]
    return [*arguments, "--retry-failed"] if spec.retry_failed else arguments


def _path(place: VolumePlaceSpec | ObjectStorePlaceSpec, mounted: str) -> str:
    return place_of(place) if isinstance(place, ObjectStorePlaceSpec) else mounted


def _environment(spec: BatchJobSpec) -> list[dict[str, Any]]:
    if (access := spec.object_store) is None:
        return []
    region = [] if access.region is None else [{"name": "AWS_DEFAULT_REGION", "value": access.region}]
    return [*region, *credential_variables(access.secret)]


def _volumes(spec: BatchJobSpec) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A volume for each claim, and a mount for each place; the input cannot be written."""
    places = [(spec.input, INPUT_PATH, True), (spec.output, OUTPUT_PATH, False)]
    mounted = [(place, path, read_only) for place, path, read_only in places if isinstance(place, VolumePlaceSpec)]
    claims = sorted({place.claim for place, _, _ in mounted})
    names = {claim: f"place-{number}" for number, claim in enumerate(claims)}
    volumes: list[dict[str, Any]] = [{"name": names[claim], "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    mounts = []
    for place, path, read_only in mounted:
        mount: dict[str, Any] = {"name": names[place.claim], "mountPath": path, "subPath": place.path}
        mounts.append({**mount, "readOnly": True} if read_only else mount)
    return volumes, mounts


def _metadata(plan: BatchJobPlan, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": plan.namespace, "labels": labels.batch(plan.name)}
