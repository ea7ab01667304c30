"""The platform part: what the gateway costs and how fast the platform changes, on a local Kubernetes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from components.core.model_identity import ModelIdentity
from loadtests.target import Target
from stacks.assets import load_assets
from tools.bench import changes, gateway_cost
from tools.bench.results import Figure, Machine, Part, inputs_key
from tools.bench.site import Site
from tools.cli import Steps
from tools.cluster.kubectl import Kubectl
from tools.endpoint import SIGNATURE
from tools.environment import LOCAL_STACK, local_stack, variables
from tools.errors import ToolError
from tools.paths import REPO
from tools.target import Target as Place
from tools.toolchain import Toolchain, ensure
from tools.up import up


@contextmanager
def site_of(target: Place, toolchain: Toolchain) -> Iterator[Site]:
    """The platform, brought up; afterwards the stack is again what its file says."""
    endpoint = up(target)
    stack = local_stack(variables(target, toolchain), toolchain)
    namespace = str(stack.outputs()["namespace"])
    with TemporaryDirectory() as folder:
        copy = Path(folder) / f"Pulumi.{LOCAL_STACK}.yaml"
        copy.write_bytes((REPO / "stacks" / copy.name).read_bytes())
        site = Site(
            stack=replace(stack, config_file=copy),
            kubectl=Kubectl(toolchain.path("kubectl"), Path(target.kubeconfig)),
            endpoint=endpoint,
            identity=ModelIdentity(SIGNATURE.model, SIGNATURE.model, namespace),
        )
        try:
            yield site
        finally:
            site.close_direct()
            if not (restored := stack.up()).ok:
                raise ToolError(f"the platform could not be put back as it was:\n{restored.log}", "make up")


def measure(site: Site) -> tuple[list[Figure], list[str]]:
    """All figures, and what to know of them."""
    steps = Steps(5)
    figures = list(steps.run("second update without a change", lambda: changes.second_up(site)))
    figures += steps.run("edit of a weight", lambda: changes.new_split(site, site.endpoint.port))
    figures += steps.run("pod created to first answer", lambda: changes.pod_start(site))
    site.up(weight=0)
    notes = [
        "Latencies count from the real departure; both ways take turns in one run, through a node port each, to the same server, with a document too short for the network."
    ]
    tried = ", ".join(f"{rate:g}" for rate in gateway_cost.RATES_RPS)
    for protocol, (gateway, direct) in pairs(site, *site.open_direct()).items():
        rate, measured = steps.run(f"gateway against direct, {protocol}", partial(gateway_cost.compare, gateway, direct))
        notes.append(f"{protocol}: {rate:g} requests/s in all, the highest of {tried} that the machine holds.")
        figures += measured
    return figures, notes


def pairs(site: Site, direct_http: int, direct_grpc: int) -> dict[str, tuple[Target, Target]]:
    """The way through the gateway and the way past it, by protocol."""
    return {
        "HTTP": (site.http("HTTP through the gateway", site.endpoint.port), site.http("HTTP direct", direct_http)),
        "gRPC": (site.grpc("gRPC through the gateway", site.endpoint.port), site.grpc("gRPC direct", direct_grpc)),
    }


def versions_of(site: Site) -> dict[str, str]:
    kubernetes = json.loads(site.kubectl.run("version", "--output", "json"))["serverVersion"]["gitVersion"]
    images = {f"image {name}": reference.rpartition(":")[2] for name, reference in load_assets(site.stack.env).images.items()}
    return {"pulumi": site.stack.check_global("version").strip(), "Kubernetes": kubernetes, **images}


def measure_part(target: Place) -> Part:
    inputs = inputs_key()
    with site_of(target, ensure()) as site:
        figures, notes = measure(site)
        versions = versions_of(site)
    return Part(figures=tuple(figures), machine=Machine.here(), versions=versions, notes=tuple(notes), inputs=inputs)
