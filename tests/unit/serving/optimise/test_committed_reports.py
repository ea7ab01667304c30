"""The reports under docs/models are about this code, and what they accepted is what model.yaml publishes."""

import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from serving.model_manifest import model_manifest, model_names
from serving.model_sources import WheelSourceSpec
from serving.optimise.inputs import inputs_key
from serving.optimise.magika import MagikaAdapter
from serving.optimise.measure import Plan
from serving.optimise.pipeline import optimise
from serving.optimise.render import NAME, markdown
from serving.optimise.report import Report
from serving.optimise.variants import REFERENCE, VARIANTS
from serving.optimise.workshop import Job
from tools.paths import REPO

DERIVED = [name for name in model_names() if any(version.derived for version in model_manifest(name).versions)]
SMALL = ("components", "docs", "serving", "tests", "tools")


def folder(model):
    return REPO / "docs" / "models" / model


def committed(model):
    return Report.model_validate_json((folder(model) / f"{NAME}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("model", DERIVED)
def test_a_report_is_about_the_code_at_hand(model):
    assert committed(model).inputs == inputs_key(model_manifest(model)), f"figures are of other code: make optimise MODEL={model}"


@pytest.mark.parametrize("model", DERIVED)
def test_every_derived_version_was_accepted_as_it_is_published(model):
    verdicts = {verdict.version: verdict for verdict in committed(model).verdicts}
    for version in model_manifest(model).versions:
        if version.quality:
            verdict = verdicts.pop(version.version)
            assert verdict.accepted
            assert (verdict.reference, verdict.minimum_agreement) == (version.quality.reference, version.quality.minimum_agreement)
            published = [(file.transformation, file.derived_sha256) for file in version.files if file.transformation != "none"]
            assert [(verdict.transformation, verdict.sha256)] == published
    assert verdicts == {}


@pytest.mark.parametrize("model", DERIVED)
def test_the_text_is_that_of_the_data_and_the_picture_is_there(model):
    assert (folder(model) / f"{NAME}.md").read_text(encoding="utf-8") == markdown(committed(model))
    picture = (folder(model) / f"{NAME}.svg").read_text(encoding="utf-8")
    assert all(row.name in picture for row in committed(model).rows if row.not_run is None)


@pytest.fixture
def wheel(tmp_path):
    """The model's files out of the package that is installed."""
    path = tmp_path / "magika.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in model_manifest("magika").version(1).files:
            assert isinstance(file.source, WheelSourceSpec)
            archive.write(str(distribution("magika").locate_file(file.source.member)), file.source.member)
    return path


def test_a_small_run_finds_the_networks_of_the_report(wheel, tmp_path):
    """Files of this repository stand in for those of the machine."""
    job = Job(
        manifest=model_manifest("magika"),
        wheels=lambda _: wheel,
        work=tmp_path,
        machine={},
        say=lambda _: None,
        plan=Plan(calls={1: 1}, rounds=1, slow_calls=1),
        variants=[variant for variant in VARIANTS if variant.name in {REFERENCE, "int8-dynamic"}],
        make_adapter=lambda _, directory: MagikaAdapter(directory, {name: Path(REPO, name) for name in SMALL}, per_extension=20),
    )
    found = {row.name: row for row in optimise(job).rows}
    reported = {row.name: row for row in committed("magika").rows}
    assert set(found) == {REFERENCE, "int8-dynamic", "version-2"}
    for name, row in found.items():
        assert (row.sha256, row.nodes) == (reported[name].sha256, reported[name].nodes)
        assert row.agreement
        assert row.agreement.value > 0.9
        assert [latency.calls for latency in row.latencies] == [1]
