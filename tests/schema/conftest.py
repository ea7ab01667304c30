"""The schemas that rendered objects are held against; resolved before any test's environment is emptied."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.charts import istio_charts
from tests.schema.crd import CustomResources
from tools.paths import REPO

Check = Callable[[Mapping[str, Any]], None]


@pytest.fixture(scope="session")
def kubernetes_version() -> str:
    """Major and minor of the Kubernetes that the tools build."""
    found = re.search(r"^\s*k8s\.io/kubernetes v(\d+\.\d+)\.", (REPO / "tools/gomod/platform/go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    return found[1]


@pytest.fixture(scope="session")
def charts() -> dict[str, Path]:
    return istio_charts()


@pytest.fixture(scope="session")
def check_istio(charts: dict[str, Path]) -> Check:
    """Checks an Istio object against the schema in its own custom resource definition."""
    return CustomResources(charts["istio-base"] / "files" / "crd-all.gen.yaml").check


@pytest.fixture(scope="session")
def chart_defaults(charts: dict[str, Path]) -> Callable[[str], dict[str, Any]]:
    """A chart's default values by the chart's name, as the chart publishes them."""

    def load(name: str) -> dict[str, Any]:
        values = yaml.safe_load((charts[name] / "values.yaml").read_text(encoding="utf-8"))
        defaults: dict[str, Any] = values["_internal_defaults_do_not_set"]
        return defaults

    return load
