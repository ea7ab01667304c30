"""What a build shows while it runs, and when it fails."""

import pytest

from tools.errors import ToolError
from tools.images.buildah import Buildah
from tools.toolchain.progress import Progress

SAID = "echo 'STEP 2/9: COPY a b'; echo 'E1130 1 model_lifecycle.cc:642] failed to load'; exit "


@pytest.fixture
def shown(monkeypatch):
    """States of the progress line."""
    states = []
    monkeypatch.setattr(Progress, "update", lambda _, state: states.append(state))
    return states


def building(monkeypatch, tmp_path, code):
    monkeypatch.setattr(Buildah, "command", lambda *_: ["sh", "-c", f"{SAID}{code}"])
    Buildah(tmp_path / "store").build("x:1", tmp_path / "Containerfile", tmp_path, None)


def test_of_a_build_that_goes_well_only_its_steps_are_shown(monkeypatch, tmp_path, shown):
    building(monkeypatch, tmp_path, 0)
    assert shown == ["STEP 2/9: COPY a b"]


@pytest.mark.usefixtures("shown")
def test_of_a_build_that_fails_the_end_of_the_log_is_shown(monkeypatch, tmp_path):
    with pytest.raises(ToolError, match="failed to load"):
        building(monkeypatch, tmp_path, 1)
