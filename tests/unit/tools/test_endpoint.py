"""Where the platform answers, and the command that asks it."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from loadtests.payloads import Signature
from serving.model_manifest import model_manifest
from tests.unit.tools.commands import calls, scripted
from tools.endpoint import Endpoint, find_endpoint, signature_of
from tools.errors import ToolError
from tools.paths import REPO
from tools.target import local_target, own_target

HOST = "magika.inference.test"
# A label as Triton sends it in binary, behind the score: four bytes of a float, then the length, then the text.
SCORE, LABEL = b"\xa4p\x7d?", b"\x03\x00\x00\x00png"
OUTPUTS = {
    "gateway": {"domain": "inference.test", "port": 30080},
    "models": {"magika": {"host": HOST, "tritonName": "magika"}, "reader": {"host": "reader.test", "tritonName": "ocr"}},
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERENCE_PLATFORM_CACHE", str(tmp_path / "cache"))


@contextmanager
def gateway(status: int, body: bytes, headers: dict[str, str]) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """A server that gives one answer to everything; yields its port and the requests it got."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append({**self.headers, "path": self.path, "content": content.decode()})
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1], seen
        finally:
            server.shutdown()
            thread.join()


def at(port):
    return Endpoint(address="127.0.0.1", port=port, host=HOST)


def test_a_file_is_sent_as_it_is_and_the_label_is_read_behind_the_score():
    outputs = [
        {"name": "score", "datatype": "FP32", "shape": [1, 1], "parameters": {"binary_data_size": len(SCORE)}},
        {"name": "label", "datatype": "BYTES", "shape": [1, 1], "parameters": {"binary_data_size": len(LABEL)}},
    ]
    head = json.dumps({"model_name": "magika", "model_version": "2", "outputs": outputs}).encode()
    with gateway(200, head + SCORE + LABEL, {"Inference-Header-Content-Length": str(len(head))}) as (port, seen):
        prediction = at(port).over_http(b"content")
    assert (prediction.label, prediction.version) == ("png", "2")
    [request] = seen
    assert (request["Host"], request["content"], request["Inference-Header-Content-Length"]) == (HOST, "content", "0")
    assert request["path"] == "/v2/models/magika/infer"


def test_a_refusal_is_told_with_the_servers_words():
    with gateway(404, b"no such route\n", {}) as (port, _), pytest.raises(OSError, match="404 Not Found: no such route"):
        at(port).over_http(b"content")


@pytest.mark.parametrize("file", ["a.png", "a file's name"])
def test_the_printed_command_sends_the_file_to_the_models_host(file):
    command = at(30080).curl(file)
    words = shlex.split(command)
    words = words[: words.index("|")]
    assert words[0] == "curl"
    assert f"@{file}" == words[words.index("--data-binary") + 1]
    assert [words[position + 1] for position, word in enumerate(words) if word == "-H"] == [
        f"Host: {HOST}",
        "Content-Type: application/octet-stream",
        "Inference-Header-Content-Length: 0",
    ]
    assert words[-1] == "http://127.0.0.1:30080/v2/models/magika/infer"


@pytest.mark.parametrize(
    ("label", "length"), [("png", 3), ("python", 6), ("c", 1), ("x-y_1", 5), ("Straße 12, 世界", 17), ("a line of thirty-two characters.", 32)]
)
def test_the_printed_command_leaves_the_label_of_a_binary_answer(label, length):
    answer = b'{"model_name":"magika"}' + SCORE + bytes([length, 0, 0, 0]) + label.encode()
    _, _, rest = at(1).curl("file").partition("|")
    done = subprocess.run(["/bin/bash", "-c", rest], input=answer, capture_output=True, check=True)
    assert done.stdout.decode().strip() == label


def test_the_invitation_shows_the_commands_of_the_readme():
    text = at(30080).invitation()
    assert 'eval "$(make env)"' in text
    assert "pulumi config set --path models.magika.canary.weight 25" in text


def nodes(*addresses):
    items = [{"status": {"addresses": [{"type": kind, "address": address} for kind, address in each.items()]}} for each in addresses]
    return f"echo '{json.dumps({'items': items})}'"


def found(tmp_path, kubectl, outputs=None):
    toolchain = scripted(tmp_path / "tools", pulumi=f"echo '{json.dumps(outputs or OUTPUTS)}'", kubectl=kubectl)
    return find_endpoint(own_target("kind-dev"), toolchain)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [({"InternalIP": "10.0.0.1"}, "10.0.0.1"), ({"InternalIP": "10.0.0.1", "ExternalIP": "192.0.2.7"}, "192.0.2.7")],
)
def test_an_own_cluster_answers_at_a_nodes_address_and_its_context_is_named(tmp_path, addresses, expected):
    endpoint = found(tmp_path, nodes(addresses))
    assert endpoint == Endpoint(address=expected, port=30080, host=HOST)
    [kubectl] = [line for line in calls(tmp_path / "tools") if line.startswith("kubectl")]
    assert "--context kind-dev" in kubectl


def test_nodes_without_an_address_are_an_error(tmp_path):
    with pytest.raises(ToolError, match="no node of kind-dev has an address"):
        found(tmp_path, nodes({"Hostname": "n"}))


def test_nodes_that_cannot_be_listed_are_an_error_with_the_reason(tmp_path):
    with pytest.raises(ToolError, match="the nodes of kind-dev cannot be listed: not allowed"):
        found(tmp_path, "echo not allowed >&2; exit 1")


def test_a_model_is_asked_by_its_own_tensors_whatever_the_stack_calls_it(tmp_path):
    toolchain = scripted(tmp_path / "tools", pulumi=f"echo '{json.dumps(OUTPUTS)}'", kubectl=nodes({"InternalIP": "10.0.0.1"}))
    reader = find_endpoint(own_target("kind-dev"), toolchain, "reader")
    assert (reader.host, reader.signature) == ("reader.test", Signature("ocr", "image", "text"))
    assert reader.curl("a.png").endswith("http://10.0.0.1:30080/v2/models/ocr/infer | LC_ALL=C tr '\\000' '\\n' | tail -n 1 && echo")
    assert all((REPO / file).is_file() for file in reader.samples)


def test_a_model_that_takes_no_file_is_told_with_its_tensors():
    with pytest.raises(ToolError, match=r"'ocr_recognise' does not take a file.*, but x \(FP32\)"):
        signature_of(model_manifest("ocr_recognise"))


def test_a_model_that_is_not_served_is_told_with_those_that_are(tmp_path):
    with pytest.raises(ToolError, match="serves no model 'ocr'") as error:
        find_endpoint(own_target("kind-dev"), scripted(tmp_path / "tools", pulumi=f"echo '{json.dumps(OUTPUTS)}'"), "ocr")
    assert error.value.hint == "models it serves: magika, reader"


def test_a_stack_without_the_model_says_how_to_get_it(tmp_path):
    with pytest.raises(ToolError, match="serves no model 'magika'"):
        found(tmp_path, nodes(), {"models": {}})


def test_a_local_cluster_that_is_not_there_is_an_error(tmp_path):
    toolchain = scripted(tmp_path / "tools", pulumi=f"echo '{json.dumps(OUTPUTS)}'")
    with pytest.raises(ToolError, match="no local cluster 'two'"):
        find_endpoint(local_target("two"), toolchain)
