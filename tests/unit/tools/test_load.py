"""`make load`: the exit code is the verdict."""

import sys
from types import SimpleNamespace

import pytest

from loadtests.errors import LoadError
from loadtests.plan import Plan
from tools import load
from tools.endpoint import Endpoint


@pytest.fixture
def verdict(monkeypatch):
    """Run the command with a report made up by the test."""

    def run(*, failures=(), invalid=(), arguments=()):
        plans = []

        def drive(_endpoint, plan):
            plans.append(plan)
            return SimpleNamespace(failures=failures, invalid=invalid)

        monkeypatch.setattr(sys, "argv", ["load", *arguments])
        monkeypatch.setattr(load, "ensure", lambda: None)
        monkeypatch.setattr(load, "find_endpoint", lambda _target, _toolchain: None)
        monkeypatch.setattr(load, "drive", drive)
        return load.main(), plans[0]

    return run


def test_a_clean_run_passes(verdict):
    assert verdict()[0] == 0


@pytest.mark.parametrize("fault", [{"failures": ("one",)}, {"invalid": ("the generator was late",)}])
def test_a_failed_request_and_an_invalid_run_fail(verdict, fault):
    assert verdict(**fault)[0] == 1


def test_the_plan_is_what_was_asked_for(verdict):
    assert verdict(arguments=("--rate", "5", "--seconds", "2"))[1] == Plan(rate_rps=5, duration_seconds=2)


def test_load_goes_to_no_public_address():
    with pytest.raises(LoadError):
        load.drive(Endpoint(address="8.8.8.8", port=80, host="x"), Plan(rate_rps=1, duration_seconds=1))
