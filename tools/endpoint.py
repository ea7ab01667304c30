"""Where the running platform answers, and how to ask it."""

import http.client
import shlex
from dataclasses import dataclass

import numpy as np
import tritonclient.grpc as triton

from loadtests.payloads import Document, Prediction, Signature, http_raw, infer_path, read_http
from serving.contract import JSON_LENGTH_HEADER
from tools.cluster.spec import Layout
from tools.cluster.state import State
from tools.environment import local_stack, variables
from tools.errors import ToolError
from tools.own_cluster import items
from tools.target import Target
from tools.toolchain import Toolchain

SIGNATURE = Signature("magika", "content", "label")
SAMPLES = {"docs/samples/gradient.png": "png", "__main__.py": "python"}
# Too few bytes for the network, so the answer comes from the rules around it: what lies around the model can then be measured at hundreds of requests
# per second, where a run of the network takes 10 ms of a core.
SHORT = Document(b"hello", "txt")
REQUEST_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where the gateway answers for the model: its address, port, and the host name that routes to the model."""

    address: str
    port: int
    host: str

    def curl(self, file: str) -> str:
        """The command a person can run for any file: the body is the file itself (Triton's raw binary request).

        The answer ends in the label, behind the binary score, whose bytes may look like a line of their own.
        """
        return " ".join(
            [
                "curl -sS --fail-with-body",
                f"-H {shlex.quote(f'Host: {self.host}')}",
                "-H 'Content-Type: application/octet-stream'",
                f"-H '{JSON_LENGTH_HEADER}: 0'",
                f"--data-binary @{shlex.quote(file)}",
                f"http://{self.address}:{self.port}{infer_path(SIGNATURE.model)}",
                "| grep -ao '[a-z0-9_-]*$' | tail -n 1",
            ]
        )

    def over_http(self, content: bytes) -> Prediction:
        request = http_raw(SIGNATURE, Document(content))
        connection = http.client.HTTPConnection(self.address, self.port, timeout=REQUEST_SECONDS)
        connection.request("POST", request.path, request.body, {"Host": self.host, **request.headers})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise OSError(f"{answer.status} {answer.reason}: {body.decode(errors='replace').strip()}")
        json_length = answer.getheader(JSON_LENGTH_HEADER)
        return read_http(SIGNATURE, None if json_length is None else int(json_length), body)

    def over_grpc(self, content: bytes) -> Prediction:
        with triton.InferenceServerClient(f"{self.address}:{self.port}", channel_args=[("grpc.default_authority", self.host)]) as client:
            tensor = triton.InferInput(SIGNATURE.input, [1, 1], "BYTES")
            tensor.set_data_from_numpy(np.array([[content]], dtype=np.object_))
            answer = client.infer(SIGNATURE.model, [tensor], client_timeout=REQUEST_SECONDS)
        return Prediction(version=answer.get_response().model_version, label=answer.as_numpy(SIGNATURE.output).item().decode())

    def invitation(self) -> str:
        """What `make up` leaves a person with."""
        lines = ["", "Classify any file, from the clone:", *(f"  {self.curl(file)}" for file in SAMPLES)]
        return "\n".join(
            [
                *lines,
                "",
                "Change the weights:",
                '  eval "$(make env)"',
                f"  pulumi config set --path models.{SIGNATURE.model}.canary.weight 25",
                "  pulumi up",
                "",
            ]
        )


def find_endpoint(target: Target, toolchain: Toolchain) -> Endpoint:
    """Where the running platform answers. Raises ToolError when the stack has no such model or the gateway no address."""
    outputs = local_stack(variables(target, toolchain), toolchain).outputs()
    if SIGNATURE.model not in outputs.get("models", {}):
        raise ToolError(f"the stack serves no model {SIGNATURE.model!r}", "run make up")
    return Endpoint(address=gateway_address(target, toolchain), port=int(outputs["gateway"]["port"]), host=outputs["models"][SIGNATURE.model]["host"])


def gateway_address(target: Target, toolchain: Toolchain) -> str:
    """A node's address: the gateway's Service is a NodePort."""
    if target.cluster is None:
        return node_address(target, toolchain)
    state = State.read(Layout.of(target.cluster))
    if state is None:
        raise ToolError(f"there is no local cluster {target.cluster!r}", "run make up")
    return state.cluster.node_ip


def node_address(target: Target, toolchain: Toolchain) -> str:
    """The first node's external address, else its internal one. Raises ToolError."""
    addresses = {entry["type"]: entry["address"] for node in items(target, toolchain, "nodes") for entry in node["status"]["addresses"]}
    found = addresses.get("ExternalIP") or addresses.get("InternalIP")
    if found is None:
        raise ToolError(f"no node of {target.context} has an address", "kubectl get nodes -o wide")
    return str(found)
