"""What a run found out, as data; rendering is elsewhere."""

from typing import Annotated

from pydantic import Field

from components.core.spec import Spec
from serving.optimise.intervals import Share
from serving.optimise.measure import Latency

Strings = Annotated[tuple[str, ...], Field(strict=False)]


class Row(Spec):
    """One variant. With `not_run`, the reason, there are no figures; `sha256` and `size_bytes` are the network file's.

    `nodes_run` and `fused`: what onnxruntime makes of the file's nodes at its level; None for other runtimes.
    """

    name: str
    what: str
    not_run: str | None = None
    sha256: str = ""
    size_bytes: int = 0
    nodes: int = 0
    nodes_run: int | None = None
    fused: dict[str, int] = Field(default_factory=dict)
    agreement: Share | None = None
    accuracy: Share | None = None
    latencies: Annotated[tuple[Latency, ...], Field(strict=False)] = ()

    def latency(self, batch: int) -> Latency | None:
        return next((latency for latency in self.latencies if latency.batch == batch), None)


class Verdict(Spec):
    """A derived version against its bound: accepted when even the low end of the interval keeps it."""

    version: int
    reference: int
    transformation: str
    sha256: str
    minimum_agreement: float
    agreement: Share

    @property
    def accepted(self) -> bool:
        return self.agreement.low >= self.minimum_agreement

    @property
    def sentence(self) -> str:
        agreement = self.agreement
        return (
            f"version {self.version} ({self.transformation}) gives version {self.reference}'s answer for {agreement.hits} of {agreement.count} examples, "
            f"{agreement.value:.2%}; with 95 % confidence at least {agreement.low:.2%}, the bound is {self.minimum_agreement:.2%}: "
            f"{'accepted' if self.accepted else 'refused'}"
        )


class Examples(Spec):
    """What was tried: sizes of the two sets, the evaluation by source and kind, and the hash of all."""

    recipe: str
    sha256: str
    calibration: int
    evaluation: int
    sources: dict[str, int]
    kinds: dict[str, int]


class Report(Spec):
    """All of it. `inputs` is the key of what the figures depend on in this repository."""

    model: str
    reference: str
    taken: str
    inputs: str
    machine: dict[str, str | int]
    packages: dict[str, str]
    examples: Examples
    rows: Annotated[tuple[Row, ...], Field(strict=False)]
    verdicts: Annotated[tuple[Verdict, ...], Field(strict=False)]

    def to_json(self) -> str:
        return self.model_dump_json(by_alias=True, indent=1) + "\n"
