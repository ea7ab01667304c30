"""The servers of the serving part, and the ways to ask them: everything on the loopback, without a cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from loadtests.address import own_address
from loadtests.engine import Load
from loadtests.grpc_target import GrpcTarget
from loadtests.http_target import HttpTarget
from loadtests.payloads import Document, HttpRequest, Signature, http_binary
from loadtests.plan import Plan
from loadtests.report import Report
from loadtests.target import Target
from tools.bench.serving_models import Served, write_models
from tools.errors import ToolError
from tools.triton_process import TritonProcess

WARM_UP_SECONDS = 1.0
ATTEMPTS = 3
LAG_LIMIT_SECONDS = 0.05


@contextmanager
def serving(log: Path, *models: Served) -> Iterator[TritonProcess]:
    """A ready Triton with exactly these models."""
    with TemporaryDirectory(prefix="bench-") as folder:
        repository = Path(folder) / "models"
        repository.mkdir()
        write_models(repository, *models)
        Path(folder).chmod(0o755)
        with TritonProcess(repository=repository, log=log) as triton:
            triton.wait_ready()
            yield triton


def grpc(triton: TritonProcess, name: str, signature: Signature, *documents: Document, version: int | None = None) -> GrpcTarget:
    """Straight to the server; the authority is nobody's business there."""
    return GrpcTarget(
        name=name,
        address=own_address("127.0.0.1", triton.grpc_port),
        authority="localhost",
        signature=signature,
        documents=documents,
        version=version,
    )


def http(
    triton: TritonProcess,
    name: str,
    signature: Signature,
    *documents: Document,
    form: Callable[[Signature, Document, int | None], HttpRequest] = http_binary,
) -> HttpTarget:
    return HttpTarget(
        name=name,
        address=own_address("127.0.0.1", triton.http_port),
        authority="localhost",
        signature=signature,
        documents=documents,
        form=form,
    )


def open_loop(targets: Sequence[Target], rate: float, seconds: float) -> Report:
    """The requests after the warm-up, the targets in turn. Raises ToolError for a failed request, LoadError when no run is valid."""
    report = try_open_loop(targets, rate, seconds).raise_if_invalid()
    if report.failures:
        raise ToolError(f"requests failed while measuring\n{report}", "see the log of the server")
    return report


def try_open_loop(targets: Sequence[Target], rate: float, seconds: float) -> Report:
    """The same, whatever came of it: the first valid run of ATTEMPTS, else the last."""
    for _ in range(ATTEMPTS):
        report = _open_loop(targets, rate, seconds)
        if not report.invalid:
            break
    return report


def _open_loop(targets: Sequence[Target], rate: float, seconds: float) -> Report:
    plan = Plan(rate_rps=rate, duration_seconds=WARM_UP_SECONDS + seconds, lag_limit_seconds=LAG_LIMIT_SECONDS, timeout_seconds=60)
    with Load(plan, targets) as load:
        report = load.finish()
    return report.between(report.window[0] + WARM_UP_SECONDS, report.window[1])
