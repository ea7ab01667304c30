"""Istio's charts for tests: the toolchain's, which takes them out of the Go module when they are not there yet; never a skip."""

from pathlib import Path

from tools.toolchain import charts
from tools.toolchain.istio import ensure_istio_files


def istio_charts() -> dict[str, Path]:
    """Directory of each chart. Raises ToolError with the way out when the module cannot be had."""
    ensure_istio_files()
    return charts()
