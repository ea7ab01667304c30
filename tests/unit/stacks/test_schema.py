"""The schema editors use says the same as the loader."""

import json
from typing import Any

import jsonschema
import pytest

from stacks import schema
from tests.documents import ENVIRONMENTS, changed, document


def valid(config: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(schema.stack_file_schema()).is_valid({"config": config}))


@pytest.mark.parametrize("stack", ENVIRONMENTS)
def test_the_committed_stack_files_satisfy_it(stack: str) -> None:
    assert valid(document(stack))


@pytest.mark.parametrize(
    ("path", "value"),
    [("gatewy", {}), ("models.magika.canary.weight", 101), ("models.magika.canary.weight", "25"), ("models.magika.sloo", 1), ("environment", "qa")],
)
def test_it_refuses_what_the_loader_refuses(path: str, value: Any) -> None:
    assert not valid(changed(path, value))


def test_keys_of_other_namespaces_are_refused() -> None:
    assert not valid({**document(), "kubernetes:context": "prod"})


def test_the_committed_file_is_current() -> None:
    assert schema.main(["--check"]) == 0


def test_a_stale_file_is_noticed_and_left_alone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stale = tmp_path / "schema.json"
    stale.write_text("{}")
    monkeypatch.setattr(schema, "SCHEMA_FILE", stale)
    assert schema.main(["--check"]) == 1
    assert "make schema" in capsys.readouterr().err
    assert stale.read_text() == "{}"


def test_a_stale_file_is_written_anew(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "SCHEMA_FILE", tmp_path / "schema.json")
    assert schema.main([]) == 0
    assert json.loads((tmp_path / "schema.json").read_text()) == schema.stack_file_schema()
