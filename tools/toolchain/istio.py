"""Istio's charts and its Envoy bootstrap, taken from the Go module that the proxies and istiod are built from, so that they always fit them."""

from pathlib import Path

from tools.cache import used
from tools.errors import ToolError
from tools.paths import content_key, toolchain_dir
from tools.toolchain.catalog import GOMOD
from tools.toolchain.go import ensure_go
from tools.toolchain.gomod import module_version
from tools.toolchain.modules import copy_files, module_directory
from tools.toolchain.progress import Progress
from tools.toolchain.storage import locked, published

MODULE = "istio.io/istio"
CHARTS = {
    "istio-base": "manifests/charts/base",
    "istiod": "manifests/charts/istio-control/istio-discovery",
    "istio-gateway": "manifests/charts/gateway",
}
BOOTSTRAP = "envoy_bootstrap.json"
FILES = {**{f"charts/{name}": path for name, path in CHARTS.items()}, BOOTSTRAP: f"tools/packaging/common/{BOOTSTRAP}"}


def istio_directory() -> Path:
    """The copy's place; its name changes with the module's version and with what is copied."""
    version = module_version(GOMOD / "platform" / "go.mod", MODULE)
    return toolchain_dir() / f"istio-{content_key([], extra=f'{version} {FILES}')}"


def ensure_istio_files() -> Path:
    target = istio_directory()
    if not target.exists():
        with locked(target, "Istio's charts"):
            if not target.exists():
                with published(target) as partial, Progress("Istio's charts"):
                    copy_files(module_directory(ensure_go(), GOMOD / "platform", MODULE), partial, FILES)
    return target


def charts() -> dict[str, Path]:
    """Chart name -> directory: `istio-base` (with the CRDs in files/crd-all.gen.yaml), `istiod`, `istio-gateway`. Raises ToolError before `ensure()`."""
    return {name: _present(f"charts/{name}") for name in CHARTS}


def envoy_bootstrap() -> Path:
    """The template that pilot-agent renders Envoy's bootstrap from. Raises ToolError before `ensure()`."""
    return _present(BOOTSTRAP)


def _present(name: str) -> Path:
    path = used(istio_directory()) / name
    if not path.exists():
        raise ToolError(f"{path} is missing", "run `make toolchain`")
    return path
