"""The pod of a Triton server."""

from typing import Any

from components import labels
from components.core.model_identity import version_label
from components.core.pods import CONTAINER_SECURITY, TOPOLOGY_KEYS, cpu_quantity, pod_security, spread
from components.inference.lifecycle import build_probes
from components.inference.plan import VersionPlan
from components.inference.ports import GRPC_PORT_NAME, HTTP_PORT_NAME, METRICS_PORT_NAME
from components.inference.repository_manifest import build_init_containers, repository_mounts, repository_volumes
from components.inference.spec import ServerSpec
from serving.contract import CONFIG_FILE, GROUP_ID, GRPC_PORT, HTTP_PORT, METRICS_PORT, REPOSITORY_PATH, USER_ID, WARMUP_FOLDER, model_ready_path

CONTAINER = "triton"
# Prometheus scrapes every 15 s; gauges such as pending requests must not be older than one of its steps.
METRICS_INTERVAL_MS = 1000
TMP_SIZE_MIB = 64
TMP_PATH = "/tmp"  # noqa: S108  a volume of the pod's own
SHM_PATH = "/dev/shm"  # noqa: S108  where POSIX shared memory lives
RANDOM_PATH = "/proc/sys/kernel/random/uuid"
MIB = 1024 * 1024
# Triton reads JSON by recursion, up to some 300 bytes of stack a level, on threads whose stack is as large as this limit; untouched pages cost
# nothing. The usual 8 MiB overflow at 50,000 levels, and the gateway lets JSON of 99,999 bytes pass.
STACK_KIB = 64 * 1024
# Shared memory belongs to the pod, not to the container: what a killed server leaves there would fill it within a few restarts, and the server
# would stay unready for good. The shell makes way for the server, which thus is process 1 and gets the signals.
#
# What changes a server is for nobody: its callers would need a header whose value is a random number of this one start, known to the process alone
# (triton-inference-server/server docs/customization_guide/inference_protocols.md, "Limit Endpoint Access"). The pod's UID would not do: whoever
# may list pods knows it, and so does every metric about pods.
RESTRICTED_APIS = ("model-repository", "shared-memory", "trace", "logging")
ADMIN_HEADER = "inference-platform-admin"
START_SCRIPT = f"""ulimit -S -s {STACK_KIB}; rm -rf {SHM_PATH}/triton_*_backend_shm_region_* && read -r key < {RANDOM_PATH} && \\
only={",".join(RESTRICTED_APIS)}:{ADMIN_HEADER}=$key && exec tritonserver --http-restricted-api="$only" --grpc-restricted-protocol="$only" "$@\""""
START = ["/bin/sh", "-c", START_SCRIPT, "tritonserver"]


def build_pod(plan: VersionPlan, image: Any, apps_image: Any = None) -> dict[str, Any]:
    """Pod spec under the restricted Pod Security Standard. The images may be unresolved; that of the apps runs the init step, where there is one."""
    pod: dict[str, Any] = {
        "serviceAccountName": plan.identity.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": plan.drain.grace_period,
        "securityContext": pod_security(USER_ID, GROUP_ID),
        "topologySpreadConstraints": [spread(key, _pods(plan)) for key in TOPOLOGY_KEYS],
        "containers": [_container(plan, image)],
        "volumes": _volumes(plan),
    }
    if init := build_init_containers(plan.repository, plan.models, apps_image):
        pod["initContainers"] = init
    if plan.placement.node_selector:
        pod["nodeSelector"] = plan.placement.node_selector
    if plan.placement.tolerations:
        pod["tolerations"] = plan.placement.tolerations
    return pod


def _container(plan: VersionPlan, image: Any) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": image,
        "command": START,
        "args": build_arguments(plan),
        "ports": [
            {"name": HTTP_PORT_NAME, "containerPort": HTTP_PORT, "protocol": "TCP"},
            {"name": GRPC_PORT_NAME, "containerPort": GRPC_PORT, "protocol": "TCP"},
            {"name": METRICS_PORT_NAME, "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        **build_probes(plan.load, model_ready_path(plan.identity.triton_name, plan.version)),
        # The kubelet itself sleeps: no process has to start in a busy container. Stable since Kubernetes 1.34 (KEP-3960).
        "lifecycle": {"preStop": {"sleep": {"seconds": plan.drain.pre_stop}}},
        "resources": _resources(plan),
        "securityContext": CONTAINER_SECURITY,
        "volumeMounts": _mounts(plan),
    }


def build_arguments(plan: VersionPlan) -> list[str]:
    """Arguments of tritonserver; all exist since Triton 2.30 and were read from `tritonserver --help` of 2.51.

    A repository holds more models than a server has memory for, so it loads those that it is told, and no others later. A broken model leaves the
    server alive and unready, so it ends in a failed rollout and not in a crash loop (triton-inference-server/server#7014).
    """
    arguments = [
        f"--model-repository={REPOSITORY_PATH}",
        "--model-control-mode=explicit",
        *(f"--load-model={model.name}" for model in plan.models),
        # The rendered config.pbtxt is complete; asking the model for it would start its interpreter once more and cost seconds at each start.
        "--disable-auto-complete-config",
        "--exit-on-error=false",
        "--strict-readiness=true",
        f"--exit-timeout-secs={plan.drain.exit_timeout}",
        f"--http-port={HTTP_PORT}",
        f"--grpc-port={GRPC_PORT}",
        f"--metrics-port={METRICS_PORT}",
        f"--metrics-interval-ms={METRICS_INTERVAL_MS}",
        f"--log-verbose={plan.server.log_verbose}",
        *_memory_arguments(plan.server),
        *plan.server_arguments,
    ]
    if plan.shm_mib_per_instance is not None:
        backends = sorted({model.footprint.python_backend for model in plan.models if model.footprint.python_backend})
        arguments += [f"--backend-config={backend},shm-default-byte-size={plan.shm_mib_per_instance * MIB}" for backend in backends]
    return arguments


def _memory_arguments(server: ServerSpec) -> list[str]:
    """Sizes of the server's own buffers; its GPUs are numbered from 0."""
    arguments = []
    if server.response_cache_mib is not None:
        arguments.append(f"--cache-config=local,size={server.response_cache_mib * MIB}")
    if server.pinned_memory_mib is not None:
        arguments.append(f"--pinned-memory-pool-byte-size={server.pinned_memory_mib * MIB}")
    if server.cuda_memory_pool_mib is not None:
        arguments += [f"--cuda-memory-pool-byte-size={gpu}:{server.cuda_memory_pool_mib * MIB}" for gpu in range(server.gpus_per_replica)]
    return arguments


def config_key(model: str) -> str:
    """Key of a model's config.pbtxt in the ConfigMap."""
    return f"{model}.pbtxt"


def warmup_key(file: str) -> str:
    """Key of a warm-up file, named `<model>/<file>`, in the ConfigMap."""
    return f"{file.replace('/', '.')}.warmup"


def _resources(plan: VersionPlan) -> dict[str, dict[str, str]]:
    memory = f"{plan.server.memory_mib}Mi"
    # Kubernetes takes requests of extended resources from their limits; both are written so that a reader sees them.
    return {
        "requests": {"cpu": cpu_quantity(plan.server.cpu_request), "memory": memory, **plan.placement.resources},
        "limits": {"cpu": cpu_quantity(plan.server.cpu_limit), "memory": memory, **plan.placement.resources},
    }


def _mounts(plan: VersionPlan) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [{"name": "tmp", "mountPath": TMP_PATH}]
    for model in plan.models:
        path = f"{REPOSITORY_PATH}/{model.name}/{CONFIG_FILE}"
        mounts.append({"name": "model-config", "mountPath": path, "subPath": config_key(model.name), "readOnly": True})
    for file in plan.warmup_files:
        folder, name = file.split("/", 1)
        path = f"{REPOSITORY_PATH}/{folder}/{WARMUP_FOLDER}/{name}"
        mounts.append({"name": "model-config", "mountPath": path, "subPath": warmup_key(file), "readOnly": True})
    mounts += repository_mounts(plan.repository, plan.models)
    return mounts if plan.shm_mib is None else [*mounts, {"name": "shm", "mountPath": SHM_PATH}]


def _volumes(plan: VersionPlan) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "tmp", "emptyDir": {"sizeLimit": f"{TMP_SIZE_MIB}Mi"}},
        {"name": "model-config", "configMap": {"name": plan.config_map}},
        *repository_volumes(plan.repository, plan.models),
    ]
    return volumes if plan.shm_mib is None else [*volumes, {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{plan.shm_mib}Mi"}}]


def _pods(plan: VersionPlan) -> dict[str, str]:
    return {**labels.model_selector(plan.identity.name), labels.VERSION: version_label(plan.version)}
