"""The serving part: what batching, protocols, quantisation, warm-up and start cost or gain, on the image's own server without a cluster."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from loadtests.address import own_address
from loadtests.front_target import FrontTarget
from loadtests.payloads import Document, Signature
from serving.front.settings import ModelTargetSpec
from serving.model_check import sole_document
from serving.model_config import BatchingSpec, InstancesSpec, PrioritiesSpec, ServingSpec, WarmupSampleSpec
from serving.model_config.batching import THROUGHPUT
from serving.model_manifest import model_manifest
from tools.bench import serving_batching, serving_bursts, serving_protocols, serving_starts
from tools.bench.results import Figure, Machine, Part, inputs_key
from tools.bench.serving_batching import Comparison
from tools.bench.serving_front import Items, batch_rates
from tools.bench.serving_models import FIXED_COST_SIGNATURE, Served, fixed_cost, from_image, server_of, signature
from tools.bench.serving_site import grpc, serving
from tools.cli import Steps
from tools.endpoint import SHORT
from tools.errors import ToolError
from tools.front_process import FrontProcess
from tools.paths import REPO
from tools.triton_process import TritonProcess, serving_rootfs

COST_MS = 50.0
# Five calls: room for the one that runs, a batch that fills, and a machine of two cores that also makes the load.
LIMIT_MS = 250.0
KIB = 1024
MAGIKA, OCR = "magika", "ocr"
ONE = InstancesSpec(count=1)
PLAIN = ServingSpec(batching=BatchingSpec(max_batch_size=32, dynamic=False), instances=ONE)
BATCHED = ServingSpec(batching=THROUGHPUT, instances=ONE)
WARM = ServingSpec(batching=BatchingSpec(max_batch_size=32), instances=ONE, warmup=(WarmupSampleSpec(),))
BURST, BURST_COST_MS = 64, 20.0
_LEVELS = BatchingSpec(max_batch_size=8, priorities=PrioritiesSpec(levels=2))
BURSTS = {
    "one instance": ServingSpec(batching=BatchingSpec(max_batch_size=8), instances=ONE),
    "one instance, two priority levels": ServingSpec(batching=_LEVELS, instances=ONE),
    "two instances, two priority levels": ServingSpec(batching=_LEVELS, instances=InstancesSpec(count=2)),
}
# Text long enough for the network, and the class it has.
TEXT = Document((REPO / "CONTRIBUTING.md").read_bytes(), "markdown")


@dataclass(frozen=True)
class Bench:
    """One server for all that is compared in one run."""

    triton: TritonProcess
    steps: Steps

    def batching(self) -> list[Figure]:
        fixed = self._pair("fixed cost", "fixed", Document(b"x", "x"), seconds=8)
        magika = self._pair(MAGIKA, MAGIKA, TEXT, seconds=5)
        figures = list(self.steps.run("dynamic batching, 64 clients", partial(serving_batching.closed_loop, fixed)))
        bounds = ((0.5 * 1000 / COST_MS, 1.1 * 1000 / COST_MS), (2 * 1000 / COST_MS, 32 * 1000 / COST_MS))
        figures += self.steps.run("dynamic batching, highest rate", partial(serving_batching.open_loop, fixed, LIMIT_MS, bounds))
        figures += self.steps.run(f"dynamic batching, {MAGIKA}", partial(serving_batching.closed_loop, magika))
        return figures

    def _pair(self, name: str, model: str, document: Document, seconds: float) -> Comparison:
        plain, batched = (grpc(self.triton, way, signature(f"{model}_{way}"), document) for way in ("plain", "batched"))
        return Comparison(name=name, plain=plain, batched=batched, seconds=seconds)

    def protocols(self) -> list[Figure]:
        figures: list[Figure] = []
        for size, rate in ((KIB, 150.0), (64 * KIB, 60.0)):
            targets = serving_protocols.protocols(self.triton, signature("echo"), Document(b"a" * size))
            compare = partial(serving_protocols.compare, targets, rate=rate, seconds=8, rounds=3)
            figures += self.steps.run(f"protocols, {size // KIB} KiB", compare)
        return figures

    def versions(self) -> tuple[Figure, ...]:
        """Version 2 is version 1 with its convolutions in INT8."""
        ways = (("FP32", 1), ("INT8", 2))
        targets = [grpc(self.triton, f"{MAGIKA} {name}", signature("magika_plain"), TEXT, version=version) for name, version in ways]
        return self.steps.run("INT8 against FP32", partial(serving_protocols.compare, targets, rate=30.0, seconds=10, rounds=4))

    def bursts(self) -> tuple[Figure, ...]:
        targets = [grpc(self.triton, name, signature(f"burst_{number}"), Document(b"x", "x")) for number, name in enumerate(BURSTS)]
        return self.steps.run("bursts", partial(serving_bursts.bursts, targets, requests=BURST, rounds=3))

    def front(self) -> tuple[Figure, ...]:
        """Both ways to the same model, which costs nothing, so that what is left is what lies before it."""
        document = Document(b"a" * KIB)
        model = ModelTargetSpec(name="echo", address=self.triton.grpc, signature=FIXED_COST_SIGNATURE, max_batch_size=1)
        with FrontProcess(model) as process:
            process.wait_ready()
            address = own_address("127.0.0.1", process.port)
            front = FrontTarget(name="HTTP front, 1 KiB", address=address, authority="localhost", signature=signature("echo"), documents=(document,))
            direct = grpc(self.triton, "direct gRPC, 1 KiB", signature("echo"), document)
            compare = partial(serving_protocols.compare, (direct, front), rate=80.0, seconds=8, rounds=3)
            return self.steps.run("HTTP front against direct gRPC", compare)

    def items(self) -> tuple[Figure, ...]:
        """The batch endpoint with what costs the model nothing, and with what costs it a run of its network."""
        files = model_manifest(MAGIKA).signature
        cases = (
            Items(name=f"{MAGIKA}, too short for the network", model=f"{MAGIKA}_plain", tensors=files, content=SHORT.content, count=20_000),
            Items(name="no cost, 5 bytes", model="echo", tensors=FIXED_COST_SIGNATURE, content=SHORT.content, count=20_000),
            Items(name=f"{MAGIKA}, text", model=f"{MAGIKA}_plain", tensors=files, content=TEXT.content, count=300),
        )
        return self.steps.run("batch endpoint", partial(batch_rates, self.triton, cases, max_batch_size=PLAIN.batching.max_batch_size))


def ocr(folder: Path) -> tuple[Figure, ...]:
    """The ensemble with and without batching in its steps, a server each; they take turns."""
    manifest = model_manifest(OCR)
    if manifest.check is None:
        raise ToolError(f"model {OCR!r} has no check sample to be asked with", "give it one in its model.yaml")
    document = Document(sole_document(manifest.check_inputs), str(manifest.check.expected))
    named = Signature(OCR, manifest.signature.inputs[0].name, manifest.check.output)
    with (
        serving(folder / "plain.log", *server_of(OCR, PLAIN)) as plain,
        serving(folder / "batched.log", *server_of(OCR, BATCHED)) as batched,
    ):
        ways = (grpc(server, name, named, document) for name, server in (("plain", plain), ("batched", batched)))
        return serving_batching.closed_loop(Comparison(name=OCR, plain=next(ways), batched=next(ways), seconds=12, rounds=2))


def models() -> Sequence[Served]:
    """Everything that is compared, in one repository."""
    ways = (("plain", PLAIN), ("batched", BATCHED))
    return [
        *(fixed_cost(f"fixed_{way}", spec, cost_ms=COST_MS) for way, spec in ways),
        *(from_image(MAGIKA, f"{MAGIKA}_{way}", spec) for way, spec in ways),
        *(fixed_cost(f"burst_{number}", spec, cost_ms=BURST_COST_MS) for number, spec in enumerate(BURSTS.values())),
        fixed_cost("echo", PLAIN, cost_ms=0),
    ]


def measure(folder: Path) -> list[Figure]:
    steps = Steps(12)
    log = folder / "triton.log"
    # Built before any clock runs.
    serving_rootfs()
    start = partial(serving_starts.starts, log, signature(MAGIKA), TEXT, 5)
    figures = list(steps.run("server started to first answer", start))
    ways = [signature(f"{MAGIKA}_cold"), signature(f"{MAGIKA}_warm")]
    pair = [from_image(MAGIKA, ways[0].model, PLAIN), from_image(MAGIKA, ways[1].model, WARM)]
    first = partial(serving_starts.first_requests, MAGIKA, partial(serving, log, *pair), ways, TEXT, 4)
    figures += steps.run("first request with and without warm-up", first)
    figures += steps.run(f"dynamic batching, {OCR}", partial(ocr, folder))
    with serving(log, *models()) as triton:
        bench = Bench(triton, steps)
        figures += bench.batching()
        figures += bench.protocols()
        figures += bench.versions()
        figures += bench.front()
        figures += bench.items()
        figures += bench.bursts()
    return figures


def notes() -> tuple[str, ...]:
    """What a reader must know to compare the figures."""
    batching = BATCHED.batching
    sizes, delay = ", ".join(map(str, batching.preferred_sizes)), batching.max_queue_delay_microseconds / 1000
    return (
        f"Fixed cost: a Python model that waits {COST_MS:g} ms in each call, whatever is in it, as a card does that is not full.",
        f"With batching: up to {batching.max_batch_size}, preferred {sizes}, delay {delay:g} ms. Without: the same model, each request alone.",
        "64 clients: closed loop, gRPC, one item a request; where p99 with batching is the lower one, the ratio is a lower bound of that at equal p99.",
        f"Highest rate: open loop, evenly spaced, p99 from the planned time at most {LIMIT_MS:g} ms for both, found to 10 %.",
        f"{MAGIKA}, {OCR}: their networks cost the CPU about as much for each item of a batch, so batching saves only what lies around them.",
        f"Bursts: {BURST_COST_MS:g} ms a call, batches of 8, nothing arrives after them. A batcher with priority levels fetches nothing ahead.",
        "Protocols: a model without cost; the three take turns in one run; times count from the real departure.",
        "Server started to first answer: the image's server with one model, without a container; pod created to first answer is in the part platform.",
    )


def measure_part() -> Part:
    inputs = inputs_key()
    known = versions()  # before the minutes of measuring, not after them
    with TemporaryDirectory(prefix="bench-log-") as folder:
        figures = measure(Path(folder))
    return Part(figures=tuple(figures), machine=Machine.here(), versions=known, notes=notes(), inputs=inputs)


def versions() -> dict[str, str]:
    """What the figures were measured with."""
    return {
        "image triton": serving_rootfs().path.parent.name.rpartition("-")[2],
        **{package: version(package) for package in ("tritonclient", "grpcio")},
        "client's libc": " ".join(platform.libc_ver()),
    }
