"""Runs in the finished image, at its build: serves every version of every model as a Deployment would, and asks it for its known answer.

A server with a broken Python answers 200 with empty tensors (numpy 2 under this backend does), so only the answer proves the image. Standard
library only; the ports are free ones, because a build shares the machine's network.
"""

import json
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

REQUEST_SECONDS = 30
JSON_LENGTH = "Inference-Header-Content-Length"
SHOWN = 8
# As `struct` writes them.
FORMS = {"BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q"}
FORMS |= {"FP16": "e", "FP32": "f", "FP64": "d"}


def main() -> None:
    """Arguments: the checks (a folder for each: configs, request, expected, check.json), the repository. Exits non-zero when an answer is wrong."""
    checks, models = map(Path, sys.argv[1:])
    for folder in sorted(checks.iterdir()):
        _prove(json.loads((folder / "check.json").read_text(encoding="utf-8")), folder, models)


def _prove(check: dict[str, Any], folder: Path, models: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        repository = Path(temporary)
        for name, version in check["load"].items():
            (repository / name).mkdir()
            (repository / name / "config.pbtxt").write_bytes((folder / "models" / name / "config.pbtxt").read_bytes())
            (repository / name / str(version)).symlink_to(models / name / str(version))
        http, grpc, metrics = _free_ports(3)
        ports = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
        loaded = ["--model-control-mode=explicit", *(f"--load-model={name}" for name in check["load"])]
        with subprocess.Popen(["tritonserver", f"--model-repository={repository}", "--disable-auto-complete-config", *loaded, *ports]) as server:
            try:
                _wait_ready(server, http, check["ready_seconds"])
                ask(http, check, folder)
            finally:
                server.terminate()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait_ready(server: "subprocess.Popen[bytes]", port: int, budget_seconds: float) -> None:
    started = time.monotonic()
    while time.monotonic() - started < budget_seconds:
        if server.poll() is not None:
            sys.exit(f"tritonserver ended with {server.returncode} before it was ready")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=1).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
        else:
            print(f"ready after {time.monotonic() - started:.2f} s", flush=True)
            return
    sys.exit(f"not ready after {budget_seconds} s")


def ask(port: int, check: dict[str, Any], folder: Path) -> None:
    """Ask the server at `port`; exits with what is wrong when it does not answer as expected."""
    compare(check, _answer(port, check, (folder / "request").read_bytes()), (folder / "expected").read_bytes())


def _answer(port: int, check: dict[str, Any], tensors: bytes) -> tuple[dict[str, Any], bytes]:
    """The output that is compared, as it is described, and its content: binary, because a value may be any file, and JSON has no FP16."""
    wanted = check["expected"]["name"]
    described = json.dumps({"inputs": check["inputs"], "outputs": [{"name": wanted, "parameters": {"binary_data": True}}]}).encode()
    url = f"http://127.0.0.1:{port}/v2/models/{check['model']}/versions/{check['version']}/infer"
    headers = {"Content-Type": "application/octet-stream", JSON_LENGTH: str(len(described))}
    request = urllib.request.Request(url, data=described + tensors, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:  # noqa: S310  our own http address
            answer, length = response.read(), int(response.headers[JSON_LENGTH])
    except urllib.error.HTTPError as refused:
        sys.exit(f"{_named(check)} refuses its check (model.yaml) with {refused.code}: {refused.read().decode(errors='replace')}")
    [output] = [output for output in json.loads(answer[:length])["outputs"] if output["name"] == wanted]
    return output, answer[length:]


def compare(check: dict[str, Any], answered: tuple[dict[str, Any], bytes], expected_content: bytes) -> None:
    """Exits when datatype, shape or an element is not as expected; numbers may differ by `tolerance`."""
    (output, content), expected = answered, check["expected"]
    said = f"{_named(check)}: {expected['name']} is"
    if (found := [output["datatype"], output["shape"]]) != (wanted := [expected["datatype"], expected["shape"]]):
        sys.exit(f"{said} {found[0]} of shape {found[1]}, expected {wanted[0]} of shape {wanted[1]}")
    actual, due = (elements(expected["datatype"], each) for each in (content, expected_content))
    if len(actual) != len(due):
        sys.exit(f"{said} {_shown(actual)}, expected {_shown(due)}")
    for place, (one, other) in enumerate(zip(actual, due, strict=True)):
        # Not `>`: what is no number is within no tolerance.
        if one != other and not (isinstance(one, float | int) and abs(one - other) <= check["tolerance"]):
            allowed = f" within {check['tolerance']}" if check["tolerance"] else ""
            sys.exit(f"{said} {_shown(actual)}, expected {_shown(due)}{allowed}; the first that differs is element {place}: {one!r}, not {other!r}")
    print(f"{said} {_shown(actual)}", flush=True)


def elements(datatype: str, content: bytes) -> list[Any]:
    """Elements of a tensor in the binary form of the protocol."""
    if datatype == "BYTES":
        elements, at = [], 0
        while at < len(content):
            end = at + 4 + struct.unpack_from("<I", content, at)[0]
            elements.append(content[at + 4 : end].decode(errors="backslashreplace"))
            at = end
        return elements
    if datatype == "BF16":
        content, datatype = b"".join(b"\0\0" + content[at : at + 2] for at in range(0, len(content), 2)), "FP32"
    form = FORMS[datatype]
    return [element for (element,) in struct.iter_unpack(f"<{form}", content)]


def _named(check: dict[str, Any]) -> str:
    return f"{check['model']} version {check['version']}"


def _shown(elements: list[Any]) -> str:
    """One element as it is, of many the first ones."""
    if len(elements) == 1:
        return repr(elements[0])
    return f"[{', '.join(map(repr, elements[:SHOWN]))}{', ...' if len(elements) > SHOWN else ''}]"


if __name__ == "__main__":
    main()
