"""Servers for the tests: one over the image's own repository for all that only ask, and as many of their own as a test needs."""

from collections.abc import Iterator

import pytest

from tools.triton_process import TritonProcess


@pytest.fixture(scope="session")
def image_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProcess]:
    """Triton over the image's own repository. For tests that leave it as it was."""
    with TritonProcess(log=tmp_path_factory.mktemp("triton") / "triton.log") as triton:
        triton.wait_ready()
        yield triton


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Append the end of a server's log to the report of a test that failed with it."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    for name, value in getattr(item, "funcargs", {}).items():
        if report.failed and isinstance(value, TritonProcess):
            report.sections.append((f"log of {name}", value.log_tail()))
    return report  # type: ignore[return-value]
