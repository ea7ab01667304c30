"""The registry on an MLflow server: MLflow's own application over loopback, and addresses behind which there is none."""

import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from serving.registry import rules
from serving.registry.errors import RegistryError
from serving.registry.location import Location
from serving.registry.lookup import look_up
from serving.registry.record import State
from serving.registry.store import Store
from serving.registry.view import CANARY, PREVIOUS, STABLE, RegisteredModel
from tests.registries import MODEL, copied, published, registered

SERVER = Path(__file__).with_name("mlflow_server.py")
PASSWORD = "hunter2"  # noqa: S105  (nobody's)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def server(mlflow_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Location]:
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, str(SERVER), copied(mlflow_database, folder).uri, str(port)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not answers(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield Location.parse(f"http://user:{PASSWORD}@127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


def decided(model: RegisteredModel, step: Callable[[RegisteredModel, int], rules.Plan], version: int) -> rules.Plan:
    return step(model, version)


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_a_version_lives_on_a_server_as_it_does_in_a_file(server: Location) -> None:
    store = registered(Store(server), published(1), published(2), published(2))
    steps: list[tuple[Callable[[RegisteredModel, int], rules.Plan], int]] = [
        (rules.promote, 1),
        (rules.canary, 2),
        (rules.promote, 2),
        (rules.archive, 1),
        (rules.restore, 1),
        (rules.canary, 1),
    ]
    for step, version in steps:
        store.take(MODEL, partial(decided, step=step, version=version))
    model = look_up(server, [MODEL, "another"], 60).model(MODEL)
    assert model == store.view().model(MODEL)
    assert model.aliases == {STABLE: 2, CANARY: 1}
    assert [(each.version, each.state) for each in model.versions] == [(1, State.TESTING), (2, State.ACTIVE)]
    assert [each.artefact_sha256 for each in model.versions] == [published(1).artefact_sha256, published(2).artefact_sha256]
    with pytest.raises(RegistryError, match=f"no {PREVIOUS} version"):
        store.take(MODEL, rules.rollback)


def test_a_server_that_is_not_there_is_named_without_password_within_the_limit() -> None:
    location = Location.parse(f"http://user:{PASSWORD}@127.0.0.1:{free_port()}")
    began = time.monotonic()
    with pytest.raises(RegistryError) as refused:
        look_up(location, [MODEL], 60)
    assert str(location) in refused.value.message
    assert PASSWORD not in str(refused.value)
    # By itself MLflow tries for four minutes.
    assert time.monotonic() - began < 60


def test_a_server_that_never_answers_is_given_up_at_the_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        location = Location.parse(f"http://user:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(RegistryError, match=r"did not answer within 0.5 s") as refused:
            look_up(location, [MODEL], 0.5)
    assert str(location) in refused.value.message
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", b"junk\r\n\r\n"]
)
def test_a_server_that_is_no_mlflow_is_one_clear_error(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        threading.Thread(target=answering, args=(other, answer), daemon=True).start()
        location = Location.parse(f"http://127.0.0.1:{other.getsockname()[1]}")
        with pytest.raises(RegistryError, match=f"registry {location} cannot be used"):
            Store(location).view()


def answering(server: socket.socket, answer: bytes) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            connection.sendall(answer)
