"""What the serving image and everyone who talks to it agree on. Imports nothing."""

HTTP_PORT = 8000
GRPC_PORT = 8001
METRICS_PORT = 8002

LIVE_PATH = "/v2/health/live"
READY_PATH = "/v2/health/ready"


def model_ready_path(model: str, version: int) -> str:
    """Answers 200 while this version of this model can be asked, whatever the other models of the server do."""
    return f"/v2/models/{model}/versions/{version}/ready"


# gRPC's path is /<package>.<service>/<method>; the package and service are those of Triton's grpc_service.proto.
GRPC_SERVICE = "inference.GRPCInferenceService"

# Length of the JSON part of a body with binary tensors; 0 says that the whole body is the one input (Triton's raw binary request).
JSON_LENGTH_HEADER = "Inference-Header-Content-Length"

# The HTTP front of a model, and the headers of requests to it. The version goes on to the gateway, which sends the request to that version alone.
FRONT_PORT = 8080
FRONT_METRICS_PORT = 8081
FRONT_LIVE_PATH = "/health/live"
FRONT_READY_PATH = "/health/ready"
REQUEST_ID_HEADER = "x-request-id"
VERSION_HEADER = "x-model-version"
PRIORITY_HEADER = "x-priority"
TIMEOUT_HEADER = "x-timeout-ms"

REPOSITORY_PATH = "/models"
CONFIG_FILE = "config.pbtxt"
# Below a model's directory; Triton reads the files of warm-up requests from there.
WARMUP_FOLDER = "warmup"

# The image runs as this user and group; both are numeric so that `runAsNonRoot` can be checked by the kubelet.
USER_ID = 65532
GROUP_ID = 65532
