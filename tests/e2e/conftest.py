"""The platform of the end-to-end tests: the local cluster with the stack `local`, as `make up` leaves it."""

from collections.abc import Iterator

import pytest

from tests.e2e.diagnostics import dump
from tests.e2e.platform import SYSTEM_NAMESPACES, Platform
from tests.e2e.session import running_platform


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    platform = running_platform(tmp_path_factory.mktemp("stack"))
    yield platform
    platform.kube.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Append the state of the cluster to the report of a failed test, while it is still as it was."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    platform = getattr(item, "funcargs", {}).get("platform")
    if report.failed and isinstance(platform, Platform):
        report.sections.append(("cluster", dump(platform.kube, SYSTEM_NAMESPACES)))
    return report  # type: ignore[return-value]
