"""Predictions that `make up` and `make predict` show."""

import http.client
from dataclasses import dataclass, field

import pytest
from tritonclient.grpc import InferenceServerException

from loadtests.payloads import Prediction
from tools import predict
from tools.cluster.status import ClusterStatus
from tools.endpoint import SAMPLES
from tools.errors import ToolError
from tools.paths import REPO
from tools.target import local_target
from tools.toolchain import Toolchain


@dataclass
class FakeGateway:
    """Answers with the sample's own label, or raises what it is told to, as often as it is told to."""

    faults: list[Exception] = field(default_factory=list)
    label: str | None = None
    asked: list[str] = field(default_factory=list)
    samples: dict[str, str] = field(default_factory=lambda: dict(SAMPLES))

    def _answer(self, protocol, content):
        self.asked.append(protocol)
        if self.faults:
            raise self.faults.pop(0)
        known = {(REPO / file).read_bytes(): label for file, label in SAMPLES.items()}
        return Prediction(version="1", label=self.label or known.get(content, "txt"))

    def over_http(self, content):
        return self._answer("HTTP", content)

    def over_grpc(self, content):
        return self._answer("gRPC", content)

    def curl(self, file):
        return f"curl {file}"


def gateway(*faults, label=None):
    return FakeGateway(list(faults), label)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("tools.predict.time.sleep", lambda _: None)


@pytest.mark.parametrize("fault", [ConnectionRefusedError("refused"), http.client.BadStatusLine("x"), InferenceServerException("unavailable")])
def test_a_route_that_is_not_in_force_yet_is_asked_again(fault, capsys):
    asked = gateway(fault, fault, fault)
    predict.demonstrate(asked)
    assert asked.asked == ["HTTP"] * 4 + ["gRPC", "HTTP", "gRPC"]
    assert "docs/samples/gradient.png: png (version 1, HTTP)" in capsys.readouterr().out


def test_a_gateway_that_never_answers_is_an_error_with_the_last_reason(monkeypatch):
    monkeypatch.setattr(predict, "ROUTE_SECONDS", 0.0)
    with pytest.raises(ToolError, match="no prediction within 0 s: refused"):
        predict.demonstrate(gateway(*[ConnectionRefusedError("refused")] * 1000))


def test_a_wrong_answer_is_an_error_and_not_asked_again():
    wrong = gateway(label="zip")
    with pytest.raises(ToolError, match="over HTTP is 'zip', not 'png'"):
        predict.demonstrate(wrong)
    assert wrong.asked == ["HTTP"]


def test_a_fault_of_ours_is_not_waited_for():
    with pytest.raises(ZeroDivisionError):
        predict.demonstrate(gateway(ZeroDivisionError()))


def test_a_persons_file_is_classified_over_both_protocols(tmp_path, capsys):
    file = tmp_path / "a file"
    file.write_bytes(b"x")
    predict.classify(file, gateway)
    assert capsys.readouterr().out.splitlines() == [f"{file}: txt (version 1, HTTP)", f"{file}: txt (version 1, gRPC)", f"curl {file}"]


@pytest.mark.parametrize("name", [".", "missing"])
def test_a_file_that_cannot_be_read_is_told_before_the_platform_is_looked_for(tmp_path, name):
    with pytest.raises(ToolError, match="cannot be read"):
        predict.classify(tmp_path / name, lambda: pytest.fail("the platform was looked for"))


def test_no_answer_is_an_error_a_person_can_act_on(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ToolError, match="no prediction over HTTP: refused"):
        predict.classify(file, lambda: gateway(ConnectionRefusedError("refused")))


def test_the_samples_are_in_the_clone():
    assert [file for file in SAMPLES if not (REPO / file).is_file()] == []


@pytest.mark.parametrize("state", ["absent", "stopped"])
def test_a_cluster_that_does_not_run_is_said_and_nobody_is_asked(state, monkeypatch):
    monkeypatch.setattr("tools.predict.cluster.status", lambda name: ClusterStatus(name=name, state=state))
    monkeypatch.setattr(predict, "find_endpoint", lambda *_: pytest.fail("asked"))
    with pytest.raises(ToolError, match=f"'local' does not run: {state}") as refused:
        predict.running_endpoint(local_target("local"))
    assert refused.value.hint == "run make up"


def test_every_model_of_the_stack_that_has_samples_is_asked_and_the_first_is_what_is_shown(monkeypatch):
    found = {"magika": gateway(), "ocr": gateway(), "mine": gateway()}
    monkeypatch.setattr(predict, "find_endpoints", lambda *_: {name: lambda name=name: found[name] for name in found})
    assert predict.demonstrate_all(local_target("two"), Toolchain({}, REPO)) is found["magika"]
    assert [bool(each.asked) for each in found.values()] == [True, True, False]


def test_a_stack_of_models_that_nobody_can_ask_is_told_so(monkeypatch):
    monkeypatch.setattr(predict, "find_endpoints", lambda *_: {"mine": lambda: pytest.fail("asked")})
    with pytest.raises(ToolError, match="serves none of the models magika, ocr"):
        predict.demonstrate_all(local_target("two"), Toolchain({}, REPO))
