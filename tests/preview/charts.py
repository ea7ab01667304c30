"""Charts for a cluster that runs no pods: Istio's definitions without its webhooks, which only a running istiod could answer."""

import shutil
from pathlib import Path

CHART = "apiVersion: v2\nname: {name}\nversion: 0.0.0\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}\n"


def quiet_charts(real: dict[str, Path], folder: Path) -> dict[str, str]:
    """Chart name -> directory, in the manner of the local assets."""
    base = folder / "istio-base"
    shutil.copytree(real["istio-base"], base)
    for template in (base / "templates").glob("*webhook*"):
        template.unlink()
    return {"istio-base": str(base), "istiod": _empty(folder, "istiod"), "istio-gateway": _empty(folder, "gateway")}


def _empty(folder: Path, name: str) -> str:
    chart = folder / name
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(CHART.format(name=name))
    (chart / "templates" / "config.yaml").write_text(CONFIG_MAP)
    return str(chart)
