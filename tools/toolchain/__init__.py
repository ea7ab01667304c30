"""Finds or builds every program the platform needs: `python -m tools.toolchain`, or `ensure()` from code."""

from tools.toolchain.assembly import Toolchain, ensure
from tools.toolchain.istio import charts, envoy_bootstrap

__all__ = ["Toolchain", "charts", "ensure", "envoy_bootstrap"]
