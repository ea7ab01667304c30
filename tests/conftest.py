"""A hermetic environment: no kubeconfig, no credentials and no Pulumi settings of whoever runs the tests."""

import fcntl
import os
from pathlib import Path

import pytest
from hypothesis import settings

from serving.registry.location import Location
from tests.registries import copied, empty_database

# Whole families, because a new variable of one of these tools must not leak in either.
AMBIENT_PREFIXES = ("AWS_", "KUBE", "PULUMI_", "HELM_", "GOOGLE_", "AZURE_", "INFERENCE_PLATFORM_")
# Folders of this directory whose tests start a cluster or run an image out of the cache.
TIERS_WITH_ENGINES = ("e2e", "preview", "serving")

# What `make` hands to its children would reach the `make` of a test too, when the tests themselves run under `make test`.
OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")


# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("project", deadline=None)
settings.load_profile("project")


def pytest_configure() -> None:
    for name in OF_MAKE:
        os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def hermetic_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests see none of the user's clusters and accounts; tiers that start an engine set up their own surroundings."""
    if request.path.relative_to(Path(__file__).parent).parts[0] in TIERS_WITH_ENGINES:
        return
    for name in list(os.environ):
        if name.startswith(AMBIENT_PREFIXES):
            monkeypatch.delenv(name)
    # Clients fall back to files under the home directory when the variables are gone.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def mlflow_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty registry, to be copied; the first process that needs it makes it for all of this run."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "registry"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "done"
        if not done.exists():
            empty_database(folder).rename(done)
    return done


@pytest.fixture
def registry(mlflow_database: Path, tmp_path: Path) -> Location:
    """An empty registry of the test's own."""
    return copied(mlflow_database, tmp_path)
