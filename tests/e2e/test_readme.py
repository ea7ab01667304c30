"""The README's commands, run as they stand there by a person's shell in a clone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.platform import MODEL, NAMESPACE, VIRTUAL_SERVICES, Platform
from tools.paths import REPO

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NOT_CLONED = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this clone somewhere else, so that an edit of the stack file stays there."""
    copy = tmp_path_factory.mktemp("readme") / "clone"
    shutil.copytree(REPO, copy, ignore=shutil.ignore_patterns(*NOT_CLONED))
    return copy


def block(section: str) -> str:
    """The first indented block of a section of the README; `pulumi up` is answered yes, as a person would."""
    text = (REPO / "README.md").read_text(encoding="utf-8").split(f"## {section}\n")[1].split("\n## ")[0]
    (lines, *_) = re.findall(r"(?:^    .+\n)+", text, re.MULTILINE)
    return re.sub(r"^    ", "", lines, flags=re.MULTILINE).replace("pulumi up", "pulumi up --yes")


def run(clone: Path, commands: str) -> str:
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def weights(platform: Platform) -> list[int]:
    route = platform.kube.get(VIRTUAL_SERVICES, MODEL, NAMESPACE)
    assert route is not None
    [by_weight] = [entry for entry in route["spec"]["http"] if entry["name"] == "grpc"]
    return [destination["weight"] for destination in by_weight["route"]]


def test_the_weights_change_as_the_readme_says(platform: Platform, clone: Path) -> None:
    with platform.restored():
        run(clone, block("Change the weights"))
        assert weights(platform) == [75, 25]


def test_status_and_predict_answer(platform: Platform, clone: Path) -> None:
    assert f"{MODEL}: v1 90 %, v2 10 %" in run(clone, "make -s status")
    assert "README.md: markdown" in run(clone, "make -s predict FILE=README.md")
    assert "invalid" not in run(clone, "make -s load RATE=20 SECONDS=5")
