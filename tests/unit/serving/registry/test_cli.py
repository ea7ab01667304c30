"""`python -m serving.registry`: what a person types, reads and is refused."""

import json
from pathlib import Path

import pytest

from serving.registry.__main__ import main
from serving.registry.location import REGISTRY_VARIABLE, Location
from serving.registry.store import Store
from tests.registries import MODEL, mlflow, published

REPORT = {
    "model": MODEL,
    "dataSet": {"name": "types", "sha256": "a" * 64, "size": 708},
    "versions": {"1": {"accuracy": 1.0, "p50Ms": 4.0, "sizeBytes": 3163737}, "2": {"accuracy": 0.99, "p50Ms": 3.0}},
}


@pytest.fixture(autouse=True)
def named(registry: Location, monkeypatch: pytest.MonkeyPatch) -> Location:
    monkeypatch.setenv(REGISTRY_VARIABLE, registry.uri)
    return registry


@pytest.fixture
def report(tmp_path: Path) -> Path:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(REPORT))
    return file


def run(*words: object) -> None:
    assert main([str(word) for word in words]) == 0


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What a command prints when it does what it should."""
    capsys.readouterr()
    run(*words)
    return capsys.readouterr().out


def refusal(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([str(word) for word in words]) == 1
    return capsys.readouterr().err


def test_the_versions_of_model_yaml_go_from_trial_to_stable_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    run("register", MODEL)
    run("promote", MODEL, 1)
    run("canary", MODEL, 2)
    assert said(capsys, "promote", MODEL, 2) == "model 'magika' version 2: ACTIVE and stable, version 1 is previous\n"
    run("rollback", MODEL)
    run("archive", MODEL, 2)
    [model] = json.loads(said(capsys, "list", "--json"))
    assert (model["name"], model["aliases"]) == (MODEL, {"stable": 1})
    assert [(each["version"], each["state"], each["artefactSha256"]) for each in model["versions"]] == [
        (1, "ACTIVE", published(1).artefact_sha256),
        (2, "ARCHIVED", published(2).artefact_sha256),
    ]


def test_the_list_is_a_line_per_version_with_what_people_look_for(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    run("register", MODEL, "--report", report)
    run("promote", MODEL, 1)
    lines = [line.split() for line in said(capsys, "list").splitlines()]
    assert lines[0] == ["model", "version", "state", "aliases", "created", "data", "set", "metrics", "artefact", "framework", "requires"]
    first, second = lines[2:4]
    assert first[:4] == [MODEL, "1", "ACTIVE", "stable"]
    assert first[6:] == [
        "types", "(708)", "accuracy=1", "p50Ms=4", "sizeBytes=3163737", published(1).artefact_sha256[:12], "onnx", "15", "triton>=2.51", "onnxruntime>=1.9",
    ]  # fmt: skip
    assert second[:4] == [MODEL, "2", "TESTING", "-"]


def test_two_versions_stand_side_by_side_with_their_differences(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    run("register", MODEL, "--report", report)
    rows = {line.split()[0]: line.split()[1:] for line in said(capsys, "compare", MODEL, 1, 2).splitlines() if line.strip()}
    assert rows["accuracy"] == ["1", "0.99", "-1.0", "%"]
    assert rows["p50Ms"] == ["4", "3", "-25.0", "%"]
    assert rows["sizeBytes"] == ["3163737", "-", "-"]
    assert rows["artefact"][-1] == "differs"
    compared = json.loads(said(capsys, "compare", MODEL, 1, 2, "--json"))
    assert compared[1] == {"metric": "p50Ms", "first": 4.0, "second": 3.0, "changePercent": -25.0}


def test_registering_again_says_so_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(said(capsys, "register", MODEL, 1, "--json")) == [{"said": "model 'magika' version 1: registered, TESTING", "changed": True}]
    assert json.loads(said(capsys, "register", "--json"))[0] == {"said": "model 'magika' version 1: registered before, TESTING", "changed": False}


def test_everything_about_a_version_is_shown(capsys: pytest.CaptureFixture[str], named: Location) -> None:
    run("register", MODEL, 2, "--source", "s3://models/magika/2")
    with mlflow(Store(named)) as client:
        client.set_model_version_tag(MODEL, "1", "owner", "team")
    shown = json.loads(said(capsys, "show", MODEL, 2, "--json"))
    assert (shown["source"], shown["otherTags"], shown["aliases"]) == ("s3://models/magika/2", {"owner": "team"}, [])
    assert "source: s3://models/magika/2" in said(capsys, "show", MODEL, 2)


@pytest.mark.parametrize(
    ("words", "reason", "way_out"),
    [
        (("register", "resnet"), "resnet", "models there are: magika"),
        (("register", MODEL, 9), "has no version 9", "published versions: 1, 2"),
        (("promote", MODEL, 1), "version 1 is not registered (registered: none)", "python -m serving.registry register magika 1"),
        (("show", MODEL, 1), "version 1 is not registered", "register"),
        (("rollback", MODEL), "no previous version", "promote magika <version>"),
        (("archive", "it's", 1), 'model name "it\'s"', "serving/models/"),
        (("register", "--report", "missing.json"), "report missing.json cannot be read", "name the JSON"),
        (("--uri", "registry.db", "list"), "--uri is no place of a registry", "make env"),
        (("register", MODEL, 1, "--source", "s3://" + "x" * 600), "of 605 characters", "at most 500 printable characters"),
        (("register", MODEL, 1, "--source", "s3://a\nb"), "s3://a\\nb", "printable"),
        (("--uri", "sqlite:////" + "x" * 300, "register", MODEL, 1), "File name too long", "is the address right"),
        (("--uri", "", "list"), "--uri is no place of a registry", "make env"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason_and_the_way_out(capsys: pytest.CaptureFixture[str], words, reason: str, way_out: str) -> None:
    text = refusal(capsys, *words)
    assert text.startswith("error: ")
    assert reason in text
    assert way_out in text.split("->")[1]


def test_without_a_registry_named_none_is_guessed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REGISTRY_VARIABLE)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////ambient.db")
    assert "no registry is named" in refusal(capsys, "list")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("model",), "resnet", "the report is about model 'resnet', not 'magika'"),
        (("versions",), {}, "versions: "),
        (("versions", "1"), {"accuracy": 99}, "versions.1.accuracy: "),
        (("versions", "1"), {"p95Ms": 1}, "versions.1.p95Ms: "),
        (("dataSet",), None, "dataSet: "),
    ],
)
def test_a_report_that_is_none_is_refused_with_its_key(capsys: pytest.CaptureFixture[str], report: Path, path, value, reason: str) -> None:
    content = json.loads(report.read_text())
    node = content
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    report.write_text(json.dumps(content))
    assert reason in refusal(capsys, "register", MODEL, "--report", report)


def test_a_report_needs_its_model(capsys: pytest.CaptureFixture[str], report: Path) -> None:
    assert f"register magika --report {report}" in refusal(capsys, "register", "--report", report)


def test_an_unreadable_entry_is_an_error_beside_the_list_of_the_others(capsys: pytest.CaptureFixture[str], named: Location) -> None:
    run("register", MODEL)
    with mlflow(Store(named)) as client:
        client.set_model_version_tag(MODEL, "2", "inference.metrics.p99Ms", "fast")
    assert main(["list"]) == 1
    printed = capsys.readouterr()
    assert "tag inference.metrics.p99Ms = 'fast'" in printed.err
    assert "TESTING" in printed.out
