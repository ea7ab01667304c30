"""What of the serving part is arithmetic: the search for a rate, what counts as held, the models that are compared."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.address import own_address
from loadtests.closed import ClosedReport
from loadtests.grpc_target import GrpcTarget
from loadtests.payloads import Document
from loadtests.plan import Plan
from loadtests.report import Report
from loadtests.samples import Answer, ErrorKind, Sample
from serving.contract import CONFIG_FILE
from serving.model_config import BatchingSpec, InstancesSpec, ServingSpec, parse_config
from tools.bench import serving_batching, serving_part, serving_protocols
from tools.bench.serving_batching import CLIENTS, RESOLUTION, Comparison, closed_loop, held, highest_rate
from tools.bench.serving_models import fixed_cost, signature, write_models
from tools.errors import ToolError


def report(milliseconds, *, error=None, lag=0.0, target="t"):
    samples = tuple(
        Sample(target, "grpc", index / 100, index / 100 + lag, index / 100 + lag + milliseconds / 1000, Answer(0, "1", error)) for index in range(100)
    )
    return Report(plan=Plan(rate_rps=100, duration_seconds=1), samples=samples, marks=(), window=(0.0, 1.0))


@pytest.mark.parametrize(
    ("run", "holds"),
    [(report(90), True), (report(110), False), (report(10, error=ErrorKind.STATUS), False), (report(10, lag=0.5), False)],
    ids=["within", "slow", "fails", "late"],
)
def test_a_rate_is_held_within_the_limit_without_failures_and_in_time(run, holds):
    assert held(run, 100) == holds


@given(st.floats(10, 1_000), st.floats(1.2, 50))
def test_the_highest_rate_is_found_to_the_resolution_and_never_overstated(capacity, room):
    low, high = capacity / room, capacity * room
    found = highest_rate(lambda rate: rate <= capacity, low, high)
    assert capacity / RESOLUTION <= found * 1.0001
    assert found <= capacity


def test_a_server_that_does_not_even_hold_the_lower_bound_is_no_figure():
    with pytest.raises(ToolError, match="does not hold 5 requests/s"):
        highest_rate(lambda rate: False, 5, 10)


def target(name):
    return GrpcTarget(name=name, address=own_address("127.0.0.1", 1), authority="", signature=signature(name), documents=(Document(b"x"),))


def test_a_closed_loop_comparison_says_ratio_throughput_and_p99_of_both_ways(monkeypatch):
    def drive(plan, to):
        assert plan.clients == CLIENTS
        count, milliseconds = (40, 10) if to.name == "batched" else (10, 50)
        return ClosedReport(tuple(Sample(to.name, "grpc", 0, 0, milliseconds / 1000, Answer(0, "1")) for _ in range(count)), 2.0)

    monkeypatch.setattr(serving_batching, "drive", drive)
    figures = {each.name: each for each in closed_loop(Comparison(name="m", plain=target("plain"), batched=target("batched"), seconds=2))}
    assert figures["m, 64 clients: throughput with batching / without"].values == (4.0, 4.0, 4.0)
    assert (figures["m, 64 clients, without"].median, figures["m, 64 clients, without, p99"].median) == (5.0, 50.0)


def test_targets_are_compared_with_the_first_one_in_one_run(monkeypatch):
    one, other = target("one"), target("other")
    samples = report(10, target="one").samples + report(20, target="other").samples
    monkeypatch.setattr(serving_protocols, "open_loop", lambda targets, rate, seconds: replace(report(1), samples=samples))
    figures = {each.name: each.median for each in serving_protocols.compare([one, other], rate=1, seconds=1, rounds=2)}
    assert figures["other / one, p50"] == pytest.approx(2)
    assert figures["one, p99"] == pytest.approx(10)


def test_a_fixed_cost_model_is_written_for_the_servers_user_with_its_cost(tmp_path):
    repository = tmp_path / "models"
    repository.mkdir(mode=0o700)
    serving = ServingSpec(batching=BatchingSpec(max_batch_size=4, dynamic=False), instances=InstancesSpec(count=1))
    write_models(repository, fixed_cost("slow", serving, cost_ms=12.5))
    config = parse_config((repository / "slow" / CONFIG_FILE).read_text())
    assert (config.name, config.max_batch_size, config.parameters["cost_ms"].string_value) == ("slow", 4, "12.5")
    assert not config.HasField("dynamic_batching")
    assert all(path.stat().st_mode & 0o005 == 0o005 for path in (repository, *repository.rglob("*")))
    assert (repository / "slow" / "1" / "model.py").is_file()


def test_what_a_measurement_was_taken_with_is_known_before_it_starts(monkeypatch, tmp_path):
    order = []

    def rootfs():
        order.append("versions")
        return SimpleNamespace(path=tmp_path / "triton-0123456789ab" / "rootfs")

    def measure(folder):
        order.append("measure")
        return []

    monkeypatch.setattr(serving_part, "serving_rootfs", rootfs)
    monkeypatch.setattr(serving_part, "measure", measure)
    part = serving_part.measure_part()
    assert order == ["versions", "measure"]
    assert part.versions["image triton"] == "0123456789ab"
    assert part.versions["tritonclient"][0].isdigit()
