"""Where variants are made and tried. What is done is kept on disk under a key of all it depends on, so an interrupted run goes on where it was.

Answers and times depend on networks, not on how they were made: they outlive an edit of the pipeline that makes the same network.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from serving.model_manifest import ModelManifest
from serving.optimise.adapters import Adapter, Answerer, Feed, adapter_of
from serving.optimise.errors import OptimisationError
from serving.optimise.examples import ExampleSet, spread
from serving.optimise.inputs import inputs_key, model_code, packages
from serving.optimise.measure import Plan, Round, take, write_whole
from serving.optimise.variants import VARIANTS, Variant
from serving.repository.build import build_repository
from serving.repository.sources import Wheels

# p99 needs a hundred calls; larger batches take longer and vary less.
PLAN = Plan(calls={1: 17, 4: 4, 8: 3, 16: 2}, rounds=6, slow_calls=1)


@dataclass(frozen=True)
class Job:
    """What to optimise and where to work. `machine` describes where the figures are taken; `say` tells a person what goes on."""

    manifest: ModelManifest
    wheels: Wheels
    work: Path
    machine: Mapping[str, str | int]
    say: Callable[[str], None]
    plan: Plan = PLAN
    variants: Sequence[Variant] = VARIANTS
    make_adapter: Callable[[str, Path], Adapter] = adapter_of


def _key(*facts: str) -> str:
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


class Workshop:
    """The files and running networks of one job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._answerers: dict[str, Answerer] = {}
        code = inputs_key(job.manifest)
        self._versions = job.work / "versions" / code
        self._versions.parent.mkdir(parents=True, exist_ok=True)
        # Also when it is there: what an interruption or a hand left of it is compared, and refused if it differs.
        build_repository([job.manifest], job.wheels, self._versions)
        self._networks = job.work / "networks" / _key(code, self.examples.sha256)

    @property
    def adapter(self) -> Adapter:
        return self._adapter(self.reference_version)

    @cached_property
    def examples(self) -> ExampleSet:
        return self.adapter.examples()

    @cached_property
    def reference_version(self) -> int:
        """The version that derived ones are compared with; a model without derived ones is measured from its first."""
        manifest = self._job.manifest
        references = {version.quality.reference for version in manifest.versions if version.quality}
        if len(references) > 1:
            raise OptimisationError(
                f"versions of {manifest.name} are derived from several: {sorted(references)}",
                hint="a report compares with one version: set the same `quality.reference` in each",
            )
        return references.pop() if references else manifest.version_numbers[0]

    def network(self, variant: Variant) -> Path:
        """The variant's network: the published one of a version, or what its recipe makes of the reference."""
        if variant.version is not None:
            return self._version(variant.version) / self.adapter.network
        folder = self._networks / variant.name
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            variant.make(self._version(self.reference_version) / self.adapter.network, partial / self.adapter.network, self._calibration_feeds)
            partial.rename(folder)
        return folder / self.adapter.network

    def answerer(self, variant: Variant) -> Answerer:
        """The served computation around the running variant; CannotRunError when its runtime is not here."""
        if variant.name not in self._answerers:
            session = variant.runtime(self.network(variant), variant.level, self.adapter.fixed)
            self._answerers[variant.name] = self._adapter(variant.version or self.reference_version).answerer(session)
        return self._answerers[variant.name]

    def answers(self, variant: Variant) -> list[str]:
        """To the examples of the evaluation, one at a time; to a part of them for a slow variant."""
        answerer = self.answerer(variant)
        path = self._job.work / "answers" / f"{self._trial(variant)}.json"
        if not path.exists():
            judged = spread(self.examples.evaluation, variant.evaluated)
            write_whole(path, json.dumps([answer for example in judged for answer in answerer([example.content])]))
        found: list[str] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def rounds(self, variants: Sequence[Variant], batch: int) -> list[Round]:
        """Rounds of calls with `batch` examples; those of other variants or of another machine are other rounds."""
        contents = [example.content for example in self.examples.evaluation]
        folder = self._job.work / "rounds" / _key(repr(sorted(self._job.machine.items())), *map(self._trial, variants))
        return take(
            folder,
            {variant.name: self.answerer(variant) for variant in variants},
            contents,
            batch,
            self._job.plan,
            {each.name for each in variants if each.slow},
        )

    def _trial(self, variant: Variant) -> str:
        """Key of all that decides about the variant's answers."""
        network = hashlib.sha256(self.network(variant).read_bytes()).hexdigest()
        how = f"{variant.runtime.__name__} {variant.level} {variant.evaluated}"
        return _key(
            network, how, self.examples.sha256, repr(sorted(packages().items())), hashlib.sha256(model_code(self._job.manifest.name)).hexdigest()
        )

    def _calibration_feeds(self) -> Iterator[Feed]:
        return self.adapter.feeds([example.content for example in self.examples.calibration])

    def _version(self, number: int) -> Path:
        return self._versions / self._job.manifest.name / str(number)

    @cache  # noqa: B019  a workshop lives as long as its process
    def _adapter(self, version: int) -> Adapter:
        return self._job.make_adapter(self._job.manifest.name, self._version(version))
