"""Istio's charts for tests: the toolchain's, else those of the downloaded Go module; never a skip."""

import json
import subprocess
from pathlib import Path

from tools.errors import ToolError
from tools.paths import REPO
from tools.toolchain import charts

MODULE = "istio.io/istio"
CHARTS_IN_MODULE = {
    "istio-base": "manifests/charts/base",
    "istiod": "manifests/charts/istio-control/istio-discovery",
    "istio-gateway": "manifests/charts/gateway",
}


def istio_charts() -> dict[str, Path]:
    """Directory of each chart. On a machine where nothing is built yet, the module's source is enough; fails with the way out when there is neither."""
    try:
        return charts()
    except ToolError:
        module = _module_dir()
        return {name: module / path for name, path in CHARTS_IN_MODULE.items()}


def _module_dir() -> Path:
    command = ["go", "list", "-m", "-json", MODULE]
    try:
        answer = subprocess.run(command, cwd=REPO / "tools" / "gomod" / "platform", check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise AssertionError(f"no charts of Istio: {' '.join(command)} failed ({error}); run make toolchain") from error
    directory = json.loads(answer.stdout).get("Dir")
    assert directory, f"the module {MODULE} is not downloaded; run make toolchain"
    return Path(directory)
