"""`make predict FILE=... MODEL=...`: ask a model about a file through the gateway, over HTTP and gRPC; `make up` ends with it."""

import http.client
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tritonclient.grpc as triton

from loadtests.payloads import Prediction
from tools import cluster
from tools.cli import run_main
from tools.endpoint import DEFAULT_MODEL, SAMPLES_OF, Endpoint, find_endpoint, find_endpoints
from tools.errors import ToolError
from tools.paths import REPO
from tools.target import Target, command_line, target_of
from tools.toolchain import Toolchain, ensure

# The gateway learns of its first route within a second or two of `pulumi up`; the rest is margin for a loaded machine.
ROUTE_SECONDS = 30.0
# How a request without an answer ends, over either protocol.
UNANSWERED = (OSError, http.client.HTTPException, triton.InferenceServerException)


def demonstrate(endpoint: Endpoint) -> Endpoint:
    """Ask about the samples over both protocols and print the answers. Raises ToolError for a wrong answer, or none in time."""
    for file, expected in endpoint.samples.items():
        content = (REPO / file).read_bytes()
        for protocol, ask in (("HTTP", endpoint.over_http), ("gRPC", endpoint.over_grpc)):
            prediction = patiently(partial(ask, content))
            if prediction.label != expected:
                raise ToolError(f"the answer for {file} over {protocol} is {prediction.label!r}, not {expected!r}", "make status shows what runs")
            print(f"      {file}: {prediction.label} (version {prediction.version}, {protocol})", flush=True)
    return endpoint


def patiently(ask: Callable[[], Prediction]) -> Prediction:
    """The first answer; a route that is not in force yet is asked again until ROUTE_SECONDS have passed."""
    deadline = time.monotonic() + ROUTE_SECONDS
    while True:
        try:
            answer = ask()
        except UNANSWERED as error:
            if time.monotonic() > deadline:
                raise ToolError(f"the gateway gave no prediction within {ROUTE_SECONDS:.0f} s: {error}", "make status shows what runs") from error
            time.sleep(0.5)
        else:
            return answer


def classify(file: Path, find: Callable[[], Endpoint]) -> None:
    """Print what the platform says of `file`, over both protocols, and the command for it. Raises ToolError for a file or a platform that is not there."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ToolError(f"{file} cannot be read: {error.strerror}", "make predict FILE=<path of a file>") from error
    endpoint = find()
    for protocol, ask in (("HTTP", endpoint.over_http), ("gRPC", endpoint.over_grpc)):
        try:
            prediction = ask(content)
        except UNANSWERED as error:
            raise ToolError(f"the gateway gave no prediction over {protocol}: {error}", "make status shows what runs") from error
        print(f"{file}: {prediction.label} (version {prediction.version}, {protocol})")
    print(endpoint.curl(str(file)))


def demonstrate_all(target: Target, toolchain: Toolchain) -> Endpoint:
    """Ask every model of the stack that has samples; returns where the first of them answers. Raises ToolError."""
    asked = [demonstrate(find()) for model, find in find_endpoints(target, toolchain).items() if model in SAMPLES_OF]
    if not asked:
        raise ToolError(f"the stack serves none of the models {', '.join(SAMPLES_OF)}", "run make up with stacks/Pulumi.local.yaml as it came")
    return asked[0]


def running_endpoint(target: Target, model: str = DEFAULT_MODEL) -> Endpoint:
    """Where the platform answers. A local cluster that does not run is a ToolError: its address is then anybody's, and what answers there would mislead."""
    if target.cluster is not None and (state := cluster.status(target.cluster).state) in {"absent", "stopped"}:
        raise ToolError(f"the local cluster {target.cluster!r} does not run: {state}", "run make up")
    return find_endpoint(target, ensure(), model)


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="model of the stack; default: %(default)s")
    arguments = parser.parse_args()
    classify(arguments.file, lambda: running_endpoint(target_of(arguments), arguments.model))
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main))
