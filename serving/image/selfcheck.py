"""Runs in the finished image, at its build: starts the server and asks every version of every model for its known answer.

A server with a broken Python answers 200 with empty tensors (numpy 2 under this backend does), so only the answer proves the image. Standard
library only; the ports are free ones, because a build shares the machine's network.
"""

import json
import shutil
import socket
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
    """Arguments: the checks (per model: config.pbtxt and check.json), the repository. Exits non-zero when an answer is wrong."""
    checks, models = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as temporary:
        repository = Path(temporary, "models")
        shutil.copytree(models, repository)
        shutil.copytree(checks, repository, dirs_exist_ok=True)
        contents = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(checks.glob("*/check.json"))}
        http, grpc, metrics = _free_ports(3)
        ports = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
        server = subprocess.Popen(["tritonserver", f"--model-repository={repository}", "--disable-auto-complete-config", *ports])
        try:
            _wait_ready(server, http, max(content["ready_seconds"] for content in contents.values()))
            for name, content in contents.items():
                for version in content["versions"]:
                    _ask(http, name, version, content)
        finally:
            server.terminate()
            server.wait()


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


def _ask(port: int, name: str, version: int, content: dict[str, Any]) -> None:
    url = f"http://127.0.0.1:{port}/v2/models/{name}/versions/{version}/infer"
    request = urllib.request.Request(url, data=json.dumps(content["request"]).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:  # noqa: S310  our own http address
        answer = json.load(response)
    actual = next(output["data"] for output in answer["outputs"] if output["name"] == content["output"])
    if actual != [content["expected"]]:
        sys.exit(f"{name} version {version}: {content['output']} is {actual}, expected {content['expected']!r}")
    print(f"{name} version {version}: {content['output']} is {actual[0]!r}", flush=True)


if __name__ == "__main__":
    main()
