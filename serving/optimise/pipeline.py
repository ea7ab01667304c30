"""From a job to a report: every variant made, judged and measured, and every derived version held against its bound."""

import hashlib
from datetime import UTC, datetime

from serving.model_manifest import ModelVersionSpec
from serving.optimise.errors import RefusedError
from serving.optimise.examples import spread
from serving.optimise.inputs import inputs_key, packages
from serving.optimise.intervals import share
from serving.optimise.measure import Latency, latency_of
from serving.optimise.report import Examples, Report, Row, Verdict
from serving.optimise.runtimes import CannotRunError, onnxruntime_cpu, operators, optimised_operators
from serving.optimise.variants import REFERENCE, Variant, by_name
from serving.optimise.workshop import Job, Workshop


def optimise(job: Job) -> Report:
    """The whole report; `raise_if_refused` says what it means for the versions."""
    shop = Workshop(job)
    derived = [version for version in job.manifest.versions if version.quality]
    published = [Variant(version_name(version), "as the image build derives and the server runs it", version=version.version) for version in derived]
    variants = (*job.variants, *published)
    rows = {variant.name: _row(job, shop, variant, f"[{number}/{len(variants)}]") for number, variant in enumerate(variants, start=1)}
    latencies = _latencies(job, shop, [variant for variant in variants if rows[variant.name].not_run is None])
    return Report(
        model=job.manifest.name,
        reference=REFERENCE,
        taken=datetime.now(UTC).isoformat(timespec="seconds"),
        inputs=inputs_key(job.manifest),
        machine=dict(job.machine),
        packages=packages(),
        examples=_examples(shop),
        rows=tuple(row.model_copy(update={"latencies": tuple(latencies.get(name, ()))}) for name, row in rows.items()),
        verdicts=tuple(_verdict(version, rows[version_name(version)]) for version in derived),
    )


def raise_if_refused(report: Report) -> None:
    """RefusedError with bound and measured value when a derived version does not keep its bound."""
    refused = [verdict.sentence for verdict in report.verdicts if not verdict.accepted]
    if refused:
        raise RefusedError(
            "\n".join(refused), hint="choose a recipe that the report shows to be closer, or judge on more examples; a lower bound is a decision"
        )


def version_name(version: ModelVersionSpec) -> str:
    return f"version-{version.version}"


def _row(job: Job, shop: Workshop, variant: Variant, progress: str) -> Row:
    job.say(f"{progress} {variant.name}: {variant.what}")
    try:
        answers = shop.answers(variant)
    except CannotRunError as reason:
        job.say(f"{progress} {variant.name} did not run: {reason}")
        return Row(name=variant.name, what=variant.what, not_run=str(reason))
    original = spread(shop.answers(by_name(job.variants)[REFERENCE]), variant.evaluated)
    judged = spread(shop.examples.evaluation, variant.evaluated)
    network = shop.network(variant)
    before = operators(network)
    after = optimised_operators(network, variant.level) if variant.runtime is onnxruntime_cpu else None
    return Row(
        name=variant.name,
        what=variant.what,
        sha256=hashlib.sha256(network.read_bytes()).hexdigest(),
        size_bytes=network.stat().st_size,
        nodes=before.total(),
        nodes_run=None if after is None else after.total(),
        fused={name: count for name, count in sorted((after or {}).items()) if name not in before},
        agreement=share(sum(answer == same for answer, same in zip(answers, original, strict=True)), len(answers)),
        accuracy=share(sum(answer in example.expected for answer, example in zip(answers, judged, strict=True)), len(answers)),
    )


def _latencies(job: Job, shop: Workshop, variants: list[Variant]) -> dict[str, list[Latency]]:
    latencies: dict[str, list[Latency]] = {variant.name: [] for variant in variants}
    for batch in job.plan.calls:
        timed = [variant for variant in variants if batch == 1 or not variant.slow]
        job.say(f"{job.plan.rounds} rounds with {batch} examples per call, {len(timed)} variants in turn")
        rounds = shop.rounds(timed, batch)
        for variant in timed:
            latencies[variant.name].append(latency_of(variant.name, REFERENCE, batch, rounds))
    return latencies


def _examples(shop: Workshop) -> Examples:
    examples = shop.examples
    return Examples(
        recipe=examples.recipe,
        sha256=examples.sha256,
        calibration=len(examples.calibration),
        evaluation=len(examples.evaluation),
        sources=examples.sources(),
        kinds=examples.kinds(),
    )


def _verdict(version: ModelVersionSpec, row: Row) -> Verdict:
    if version.quality is None or row.agreement is None:
        raise ValueError(f"version {version.version} was not judged")
    return Verdict(
        version=version.version,
        reference=version.quality.reference,
        transformation=", ".join(file.transformation for file in version.files if file.transformation != "none"),
        sha256=row.sha256,
        minimum_agreement=version.quality.minimum_agreement,
        agreement=row.agreement,
    )
