"""Istio's charts for tests: those `make up` listed, else those of the Go module the tools build; never a skip."""

import json
import os
import subprocess
from pathlib import Path

from tools.paths import REPO

MODULE = "istio.io/istio"
CHARTS_IN_MODULE = {
    "istio-base": "manifests/charts/base",
    "istiod": "manifests/charts/istio-control/istio-discovery",
    "istio-gateway": "manifests/charts/gateway",
}


def istio_charts() -> dict[str, Path]:
    """Directory of each chart; fails with the way out when there is none."""
    assets = os.environ.get("INFERENCE_PLATFORM_ASSETS")
    if assets:
        listed = json.loads(Path(assets).read_text(encoding="utf-8"))["charts"]
        return {name: Path(listed[name]) for name in CHARTS_IN_MODULE}
    module = _module_dir()
    return {name: module / path for name, path in CHARTS_IN_MODULE.items()}


def _module_dir() -> Path:
    command = ["go", "list", "-m", "-json", MODULE]
    try:
        answer = subprocess.run(command, cwd=REPO / "tools" / "gomod" / "platform", check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise AssertionError(f"{' '.join(command)} failed: {error}; run make up once, or set INFERENCE_PLATFORM_ASSETS") from error
    directory = json.loads(answer.stdout).get("Dir")
    assert directory, f"the module {MODULE} is not downloaded; run: go mod download {MODULE} (in tools/gomod/platform)"
    return Path(directory)
