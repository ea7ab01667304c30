"""Where the running platform answers, and how to ask it."""

import http.client
import shlex
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tritonclient.grpc as triton

from loadtests.payloads import Document, Prediction, Signature, http_raw, infer_path, read_http
from serving.contract import JSON_LENGTH_HEADER
from serving.model_manifest import ModelManifest, SignatureSpec, model_manifest
from tools.cluster.spec import Layout
from tools.cluster.state import State
from tools.environment import local_stack, variables
from tools.errors import ToolError
from tools.own_cluster import items
from tools.target import Target
from tools.toolchain import Toolchain

DEFAULT_MODEL = "magika"
# Too few bytes for the network, so the answer comes from the rules around it: what lies around the model can then be measured at hundreds of requests
# per second, where a run of the network takes 10 ms of a core.
SHORT = Document(b"hello", "txt")
REQUEST_SECONDS = 10.0


def signature_of(manifest: ModelManifest) -> Signature:
    """How a model is asked that takes a file and names something. Raises ToolError for one with other tensors."""
    texts = [tensor.name for tensor in manifest.signature.outputs if tensor.datatype == "BYTES"]
    if [tensor.datatype for tensor in manifest.signature.inputs] != ["BYTES"] or not texts:
        raise ToolError(
            f"model {manifest.name!r} does not take a file and answer in words, but {_tensors(manifest.signature)}",
            "ask it with a program of your own",
        )
    return Signature(manifest.name, manifest.signature.inputs[0].name, texts[0])


def _tensors(signature: SignatureSpec) -> str:
    return ", ".join(f"{tensor.name} ({tensor.datatype})" for tensor in signature.tensors)


SIGNATURE = signature_of(model_manifest(DEFAULT_MODEL))
# Files of the clone, and what a model must say of each.
SAMPLES_OF = {
    DEFAULT_MODEL: {"docs/samples/gradient.png": "png", "__main__.py": "python"},
    "ocr": {"serving/models/ocr/check.png": "Triton 2.51"},
}
SAMPLES = SAMPLES_OF[DEFAULT_MODEL]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where the gateway answers for a model: its address, port, the host name that routes to the model, and how it is asked."""

    address: str
    port: int
    host: str
    signature: Signature = SIGNATURE

    @property
    def samples(self) -> Mapping[str, str]:
        """Files of the clone and what the model says of each; empty for a model that has none."""
        return SAMPLES_OF.get(self.signature.model, {})

    def curl(self, file: str) -> str:
        """The command a person can run for any file: the body is the file itself (Triton's raw binary request).

        The answer ends in the text, and the text's length before it in a zero byte; what lies before that may look like lines of its own.
        """
        return " ".join(
            [
                "curl -sS --fail-with-body",
                f"-H {shlex.quote(f'Host: {self.host}')}",
                "-H 'Content-Type: application/octet-stream'",
                f"-H '{JSON_LENGTH_HEADER}: 0'",
                f"--data-binary @{shlex.quote(file)}",
                f"http://{self.address}:{self.port}{infer_path(self.signature.model)}",
                "| LC_ALL=C tr '\\000' '\\n' | tail -n 1 && echo",
            ]
        )

    def over_http(self, content: bytes) -> Prediction:
        request = http_raw(self.signature, Document(content))
        with closing(http.client.HTTPConnection(self.address, self.port, timeout=REQUEST_SECONDS)) as connection:
            connection.request("POST", request.path, request.body, {"Host": self.host, **request.headers})
            answer = connection.getresponse()
            body = answer.read()
        if answer.status != http.client.OK:
            raise OSError(f"{answer.status} {answer.reason}: {body.decode(errors='replace').strip()}")
        json_length = answer.getheader(JSON_LENGTH_HEADER)
        return read_http(self.signature, None if json_length is None else int(json_length), body)

    def over_grpc(self, content: bytes) -> Prediction:
        with triton.InferenceServerClient(f"{self.address}:{self.port}", channel_args=[("grpc.default_authority", self.host)]) as client:
            tensor = triton.InferInput(self.signature.input, [1, 1], "BYTES")
            tensor.set_data_from_numpy(np.array([[content]], dtype=np.object_))
            answer = client.infer(self.signature.model, [tensor], client_timeout=REQUEST_SECONDS)
        return Prediction(version=answer.get_response().model_version, label=answer.as_numpy(self.signature.output).item().decode())

    def invitation(self) -> str:
        """What `make up` leaves a person with."""
        lines = ["", f"Ask {self.signature.model} about any file, from the clone:", *(f"  {self.curl(file)}" for file in self.samples)]
        return "\n".join(
            [
                *lines,
                "",
                "Change the weights:",
                '  eval "$(make env)"',
                f"  pulumi config set --path models.{self.signature.model}.canary.weight 25",
                "  pulumi up",
                "",
            ]
        )


def find_endpoint(target: Target, toolchain: Toolchain, model: str = DEFAULT_MODEL) -> Endpoint:
    """Where the running platform answers for a model of the stack. Raises ToolError when it has no such model or the gateway no address."""
    found = find_endpoints(target, toolchain)
    if model not in found:
        raise ToolError(f"the stack serves no model {model!r}", f"models it serves: {', '.join(found)}" if found else "run make up")
    return found[model]()


def find_endpoints(target: Target, toolchain: Toolchain) -> dict[str, Callable[[], Endpoint]]:
    """Every model that the stack serves, and how to find where it is asked: one that takes no file is in nobody's way."""
    outputs = local_stack(variables(target, toolchain), toolchain).outputs()
    return {name: partial(_endpoint, target, toolchain, outputs, name) for name in outputs.get("models", {})}


def _endpoint(target: Target, toolchain: Toolchain, outputs: Mapping[str, Any], model: str) -> Endpoint:
    served = outputs["models"][model]
    return Endpoint(
        address=gateway_address(target, toolchain),
        port=int(outputs["gateway"]["port"]),
        host=served["host"],
        signature=signature_of(model_manifest(served["tritonName"])),
    )


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
