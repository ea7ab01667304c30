"""`eval "$(make env)"`: the command itself."""

import pytest

from tests.unit.tools.commands import scripted
from tools import env as command


@pytest.mark.parametrize(
    ("arguments", "context"), [([], "inference-platform-local"), (["--context", "kind-dev"], "kind-dev"), (["--context", "it's"], "'it'\"'\"'s'")]
)
def test_standard_output_holds_lines_for_a_shell_and_nothing_else(arguments, context, tmp_path, monkeypatch, capsys):
    toolchain = scripted(tmp_path, pulumi="", kubectl="")
    monkeypatch.setattr(command, "ensure", lambda: toolchain)
    monkeypatch.setattr("sys.argv", ["env", *arguments])
    assert command.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("export ") for line in lines)
    assert f"export INFERENCE_PLATFORM_CONTEXT={context}" in lines
