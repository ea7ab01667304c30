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


def main() -> None:
    """Arguments: the checks (a folder for each: configs, value, check.json), the repository. Exits non-zero when an answer is wrong."""
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
                _ask(http, check, (folder / "value").read_bytes())
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


def _ask(port: int, check: dict[str, Any], value: bytes) -> None:
    """As binary tensor data, because the value may be any file."""
    tensor = struct.pack("<I", len(value)) + value
    described = json.dumps({"inputs": [{**check["input"], "parameters": {"binary_data_size": len(tensor)}}]}).encode()
    url = f"http://127.0.0.1:{port}/v2/models/{check['model']}/versions/{check['version']}/infer"
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(described))}
    request = urllib.request.Request(url, data=described + tensor, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:  # noqa: S310  our own http address
            answer = json.load(response)
    except urllib.error.HTTPError as refused:
        sys.exit(
            f"{check['model']} version {check['version']} refuses its check (model.yaml) with {refused.code}: {refused.read().decode(errors='replace')}"
        )
    actual = next(output["data"] for output in answer["outputs"] if output["name"] == check["output"])
    if actual != [check["expected"]]:
        sys.exit(f"{check['model']} version {check['version']}: {check['output']} is {actual}, expected {check['expected']!r}")
    print(f"{check['model']} version {check['version']}: {check['output']} is {actual[0]!r}", flush=True)


if __name__ == "__main__":
    main()
