"""The whole pipeline on a tiny model: what it finds, what it refuses, what it does not do twice."""

import json

import numpy as np
import pytest
from onnxruntime.quantization import CalibrationMethod
from onnxruntime.quantization.calibrate import TensorData, TensorsData, save_tensors_data

from serving.image.transform import quantise_static_int8
from serving.optimise import recipes
from serving.optimise.adapters import adapter_of
from serving.optimise.errors import OptimisationError, RefusedError
from serving.optimise.inputs import inputs_key
from serving.optimise.pipeline import optimise, raise_if_refused
from serving.optimise.runtimes import CannotRunError
from serving.optimise.variants import REFERENCE, Variant
from serving.repository.errors import RepositoryError
from tests.unit.serving.optimise import tiny

REFERENCE_VARIANT = tiny.REFERENCE_ONLY[0]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return tiny.write_network(tmp_path_factory.mktemp("network") / tiny.NETWORK)


@pytest.fixture
def good(network):
    """Calibrated on inputs like those of the evaluation."""
    recipes.calibrate(network, tiny.TinyAdapter().feeds(tiny.contents(50)), CalibrationMethod.MinMax, network.with_name(tiny.CALIBRATION))
    return derived(network)


@pytest.fixture
def ruined(network):
    """Calibrated on next to nothing: everything that comes is out of range."""
    nothing = TensorData(lowest=np.float32(0), highest=np.float32(1e-6))
    save_tensors_data(TensorsData(CalibrationMethod.MinMax, {"x": nothing, "convolved": nothing}), network.with_name(tiny.CALIBRATION))
    return derived(network)


def judged(row):
    """Number of examples that a variant was judged on."""
    return row.agreement.count


def derived(network):
    quantise_static_int8(network, network.with_name("derived.onnx"))
    return {name: network.with_name(name) for name in (tiny.NETWORK, tiny.CALIBRATION)}, tiny.sha256(network.with_name("derived.onnx"))


def test_a_version_that_keeps_its_bound_is_accepted_with_the_hash_that_is_published(good, tmp_path):
    files, sha = good
    report = optimise(tiny.job(*tiny.published(tmp_path, files, sha, minimum_agreement=0.8), tmp_path / "work", tiny.TinyAdapter()))
    raise_if_refused(report)
    [verdict] = report.verdicts
    assert (verdict.version, verdict.accepted, verdict.sha256) == (2, True, sha)
    assert verdict.agreement.count == 60
    assert verdict.sentence.endswith("the bound is 80.00%: accepted")


def test_a_version_that_does_not_keep_its_bound_is_refused_with_bound_and_measured_value(ruined, tmp_path):
    files, sha = ruined
    report = optimise(tiny.job(*tiny.published(tmp_path, files, sha, minimum_agreement=0.8), tmp_path / "work", tiny.TinyAdapter()))
    [verdict] = report.verdicts
    assert verdict.agreement.hits < 48
    with pytest.raises(RefusedError, match=rf"{verdict.agreement.hits} of 60 .* the bound is 80\.00%: refused"):
        raise_if_refused(report)


def test_a_derived_file_that_is_not_the_published_one_is_judged_as_nothing(good, tmp_path):
    files, _ = good
    with pytest.raises(RepositoryError, match="this is not the file that was judged"):
        optimise(tiny.job(*tiny.published(tmp_path, files, "0" * 64), tmp_path / "work", tiny.TinyAdapter()))


def test_a_runtime_that_is_not_there_is_a_reason_and_no_figures(network, tmp_path):
    def absent(*_):
        raise CannotRunError("no such card")

    variants = (REFERENCE_VARIANT, Variant("card", "on a card", runtime=absent))
    report = optimise(tiny.job(*tiny.original(tmp_path, network), tmp_path / "work", tiny.TinyAdapter(), variants))
    row = next(row for row in report.rows if row.name == "card")
    assert (row.not_run, row.agreement, row.latencies, row.sha256) == ("no such card", None, (), "")


def test_a_slow_variant_is_judged_on_a_part_and_timed_with_one_example(network, tmp_path):
    variants = (REFERENCE_VARIANT, Variant("slow", "slowly", evaluated=7, slow=True))
    report = optimise(tiny.job(*tiny.original(tmp_path, network), tmp_path / "work", tiny.TinyAdapter(), variants))
    rows = {row.name: row for row in report.rows}
    assert judged(rows["slow"]) == 7
    assert [latency.batch for latency in rows["slow"].latencies] == [1]
    assert [latency.batch for latency in rows[REFERENCE].latencies] == [1, 4]


def test_an_interrupted_run_goes_on_where_it_was(network, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    published = tiny.original(tmp_path, network)
    whole, first, second = tiny.TinyAdapter(), tiny.TinyAdapter(), tiny.TinyAdapter()
    variants = (REFERENCE_VARIANT, Variant("other", "the same again"))
    broken = (REFERENCE_VARIANT, Variant("other", "the same again", runtime=interrupted))
    with pytest.raises(KeyboardInterrupt):
        optimise(tiny.job(*published, tmp_path / "work", first, broken))
    resumed = optimise(tiny.job(*published, tmp_path / "work", second, variants))
    once = optimise(tiny.job(*published, tmp_path / "elsewhere", whole, variants))
    assert first.asked == 60
    assert first.asked + second.asked == whole.asked
    assert [row.agreement for row in resumed.rows] == [row.agreement for row in once.rows]


def test_a_finished_run_is_read_and_not_done_again(network, tmp_path):
    published = tiny.original(tmp_path, network)
    first = optimise(tiny.job(*published, tmp_path / "work", tiny.TinyAdapter()))
    adapter = tiny.TinyAdapter()
    second = optimise(tiny.job(*published, tmp_path / "work", adapter))
    assert adapter.asked == 0
    assert first.rows == second.rows


def test_other_examples_are_judged_anew(network, tmp_path):
    published = tiny.original(tmp_path, network)
    optimise(tiny.job(*published, tmp_path / "work", tiny.TinyAdapter(60)))
    report = optimise(tiny.job(*published, tmp_path / "work", tiny.TinyAdapter(40)))
    assert judged(report.rows[0]) == 40


def test_a_model_without_an_adapter_is_refused_by_name(tmp_path):
    with pytest.raises(OptimisationError, match="'tiny' has no adapter"):
        adapter_of("tiny", tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("derivedSha256", "1" * 64), ("sha256", "2" * 64), ("transformation", "quantise-dynamic-int8")],
)
def test_the_key_of_the_inputs_changes_with_a_versions_files(good, tmp_path, key, value):
    files, sha = good
    manifest, _ = tiny.published(tmp_path, files, sha)
    content = json.loads(manifest.model_dump_json(by_alias=True))
    content["versions"][1]["files"][0][key] = value
    assert inputs_key(manifest) != inputs_key(type(manifest).model_validate_json(json.dumps(content)))
