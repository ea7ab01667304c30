"""Traffic of the end-to-end tests: the model's signature, real files, targets at the gateway, and what a split must satisfy."""

from loadtests.address import OwnAddress, own_address
from loadtests.grpc_target import GrpcTarget
from loadtests.http_target import HttpTarget
from loadtests.payloads import Document
from loadtests.plan import Plan
from loadtests.report import Report
from loadtests.statistics import binomial_band
from tests.e2e.platform import Platform
from tools.endpoint import SAMPLES, SIGNATURE
from tools.endpoint import SHORT as SHORT_DOCUMENT
from tools.paths import REPO

PNG, PYTHON = (Document.read(REPO / file, label) for file, label in SAMPLES.items())
DOCUMENTS = (PNG, PYTHON)
SHORT = (SHORT_DOCUMENT,)

# Seen to be held with a p99 of 3 ms at 600 requests per second; the rest is room for the control plane during an edit.
SPLIT_RPS = 400.0
# How long a change may take to reach the gateway after `pulumi up` has returned.
PROPAGATION_SECONDS = 2.0


def counting_plan(rate_rps: float, duration_seconds: float) -> Plan:
    """A run that counts answers: how late the generator was on a busy machine says nothing about where a request went, so it may be late."""
    return Plan(rate_rps=rate_rps, duration_seconds=duration_seconds, timeout_seconds=30, lag_limit_seconds=5)


def gateway(platform: Platform) -> OwnAddress:
    return own_address(platform.node_address, platform.gateway_port, own=[platform.node_address])


def over_http(platform: Platform, version: int | None = None, documents: tuple[Document, ...] = DOCUMENTS) -> HttpTarget:
    address = gateway(platform)
    return HttpTarget(name="http", address=address, authority=platform.authority, signature=SIGNATURE, documents=documents, version=version)


def over_grpc(platform: Platform, version: int | None = None, documents: tuple[Document, ...] = DOCUMENTS) -> GrpcTarget:
    address = gateway(platform)
    return GrpcTarget(name="grpc", address=address, authority=platform.authority, signature=SIGNATURE, documents=documents, version=version)


def assert_split(report: Report, canary_percent: int, canary: str = "2") -> None:
    """The canary's share lies within four standard deviations of the binomial: exactly 0 for 0 and everything for 100."""
    low, high = binomial_band(report.count, canary_percent / 100)
    hits = report.versions[canary]
    assert low <= hits <= high, f"{hits} of {report.count} requests at weight {canary_percent}, expected {low:.0f} to {high:.0f}\n{report}"


def assert_no_failures(report: Report) -> None:
    assert not report.failures, str(report)
