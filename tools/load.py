"""`make load RATE=50 SECONDS=20`: open-loop traffic through the gateway, over HTTP and gRPC in turn; fails when a request fails or the run is invalid."""

import sys

from loadtests.address import own_address
from loadtests.engine import Load
from loadtests.grpc_target import GrpcTarget
from loadtests.http_target import HttpTarget
from loadtests.payloads import Document
from loadtests.plan import Plan
from loadtests.report import Report
from tools.cli import run_main
from tools.endpoint import SAMPLES, SIGNATURE, Endpoint, find_endpoint
from tools.paths import REPO
from tools.target import command_line, target_of
from tools.toolchain import ensure


def drive(endpoint: Endpoint, plan: Plan) -> Report:
    """Send the samples as planned and report. Raises LoadError for an address that is not the platform's own."""
    address = own_address(endpoint.address, endpoint.port, own=[endpoint.address])
    documents = tuple(Document.read(REPO / file, label) for file, label in SAMPLES.items())
    targets = (
        HttpTarget(name="http", address=address, authority=endpoint.host, signature=SIGNATURE, documents=documents),
        GrpcTarget(name="grpc", address=address, authority=endpoint.host, signature=SIGNATURE, documents=documents),
    )
    with Load(plan, targets) as load:
        return load.finish()


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--rate", type=float, default=50.0, help="requests per second")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long")
    arguments = parser.parse_args()
    endpoint = find_endpoint(target_of(arguments), ensure())
    report = drive(endpoint, Plan(rate_rps=arguments.rate, duration_seconds=arguments.seconds))
    print(report)
    return 1 if report.failures or report.invalid else 0


if __name__ == "__main__":
    sys.exit(run_main(main))
