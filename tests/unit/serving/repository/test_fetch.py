"""The init step: whole and right files, or an error that says what is wrong."""

import hashlib
import io
import re
from contextlib import contextmanager

import pytest

from serving.artefact import code_sha256, files_sha256
from serving.repository.cache import Cache
from serving.repository.checksums import CHECKSUMS, VersionRef
from serving.repository.errors import RepositoryError, TransientError
from serving.repository.expected import ExpectedVersion
from serving.repository.fetch import ATTEMPTS, Fetch
from serving.repository.progress import Progress
from serving.repository.store import publish, verify
from serving.repository.volume import VolumeStore
from tests.unit.serving.repository.conftest import FILES, make_repository

ONE, TWO = VersionRef("magika", 1), VersionRef("magika", 2)
LIMIT = 1_000_000
TOTAL = sum(map(len, FILES.values()))


class Naps(list[float]):
    """Pauses that nobody waits for."""


class Shaky:
    """A store whose transfers end after `pieces` bytes each, with an error that may pass."""

    def __init__(self, store, pieces):
        self.store, self.pieces, self.offsets = store, list(pieces), []

    def __getattr__(self, name):
        return getattr(self.store, name)

    @contextmanager
    def open(self, ref, name, offset=0):
        with self.store.open(ref, name, offset) as stream:
            if name != "model.onnx" or not self.pieces:
                yield stream
                return
            self.offsets.append(offset)
            yield Cut(stream.read(self.pieces.pop(0)))


class Cut(io.BytesIO):
    def read(self, size=-1):
        chunk = super().read(size)
        if not chunk:
            raise TransientError("the connection was lost", hint="")
        return chunk


@pytest.fixture
def pod(tmp_path):
    """The volume of a pod."""
    (tmp_path / "pod").mkdir()
    return VolumeStore(tmp_path / "pod")


@pytest.fixture
def fetch(pod, said):
    def run(store, *refs, limit=LIMIT, cache=None, slept=None, expected=None):
        step = Fetch(store, pod.root, limit, said.append, cache, sleep=(Naps() if slept is None else slept).append, expected=expected or {})
        step.run(refs or [ONE])
        return step

    return run


def test_all_versions_of_a_deployment_are_there_and_whole(built, target, said, fetch, pod):
    publish(built, target, built.versions(), said.append)
    step = fetch(target, ONE, TWO)
    for ref in (ONE, TWO):
        verify(pod, ref)
    assert step.downloaded == sum(path.stat().st_size for path in pod.root.rglob("*") if path.is_file() and path.name != CHECKSUMS)


def test_the_log_tells_file_bytes_and_rate(built, fetch, said):
    fetch(built)
    assert re.fullmatch(r"magika/1/model.onnx \(file 1 of 3\): 34.2 KiB of 34.2 KiB, .*/s", said[0])
    assert re.fullmatch(r"3 files, 34.2 KiB in \d+\.\d s, 34.2 KiB of them downloaded; every checksum holds", said[-1])


def test_a_long_transfer_says_every_few_seconds_where_it_stands(said):
    now = [0.0]
    progress = Progress("model.onnx", 100 * 1024**2, 0, said.append, clock=lambda: now[0])
    for _ in range(100):
        now[0] += 0.25
        progress.add(1024**2)
    assert said == [f"model.onnx: {n}.0 MiB of 100.0 MiB, 4.0 MiB/s" for n in (20, 40, 60, 80, 100)]


@pytest.mark.parametrize("length", ["same", "shorter", "longer"])
def test_a_file_that_is_corrupt_in_the_store_is_named_with_what_was_expected_and_found(built, target, said, fetch, pod, length):
    publish(built, target, [ONE], said.append)
    content = {"same": b"X" + FILES["model.onnx"][1:], "shorter": FILES["model.onnx"][:-1], "longer": FILES["model.onnx"] + b"X"}[length]
    if isinstance(target, VolumeStore):
        (target.folder(ONE) / "model.onnx").write_bytes(content)
    else:
        target.client.put_object(Bucket=target.bucket, Key=target.key(ONE, "model.onnx"), Body=content)
    with pytest.raises(RepositoryError, match=r"magika/1/model\.onnx is damaged: expected SHA-256 [0-9a-f]{64} \(35000 bytes\), found"):
        fetch(target)
    assert not (pod.folder(ONE) / "model.onnx").exists()
    assert not (pod.folder(ONE) / CHECKSUMS).exists()


def test_a_connection_that_breaks_is_gone_on_with_where_it_broke(built, fetch, pod, said):
    store, slept = Shaky(built, [1000, 2000]), Naps()
    step = fetch(store, slept=slept)
    verify(pod, ONE)
    assert store.offsets == [0, 1000]
    assert step.downloaded == TOTAL
    assert any(line.endswith("resumed at 2.9 KiB") for line in said)
    assert [0.5 <= pause <= 1.0 for pause in slept[:1]] == [True]
    assert 1.0 <= slept[1] <= 2.0


def test_the_number_of_attempts_is_bounded(built, fetch):
    slept = Naps()
    with pytest.raises(RepositoryError, match=rf"the connection was lost \(given up after {ATTEMPTS} attempts\)"):
        fetch(Shaky(built, [0] * 100), slept=slept)
    assert len(slept) == ATTEMPTS - 1


def test_what_an_earlier_container_left_is_gone_on_with(built, bucket, said, fetch, pod):
    publish(built, bucket, [ONE], said.append)
    pod.folder(ONE).mkdir(parents=True)
    (pod.folder(ONE) / "model.onnx.partial").write_bytes(FILES["model.onnx"][:30_000])
    (pod.folder(ONE) / "model.py").write_bytes(FILES["model.py"])
    assert fetch(bucket).downloaded == 5000 + len(FILES["saved/variables.index"])
    verify(pod, ONE)


@pytest.mark.parametrize("left", [b"wrong" * 100, b"X" * 35_000, b"X" * 40_000], ids=["a part", "the whole length", "too long"])
def test_a_part_that_is_of_no_use_is_fetched_again_from_the_start(built, bucket, said, fetch, pod, left):
    publish(built, bucket, [ONE], said.append)
    pod.folder(ONE).mkdir(parents=True)
    (pod.folder(ONE) / "model.onnx.partial").write_bytes(left)
    fetch(bucket)
    verify(pod, ONE)


def test_a_model_that_does_not_fit_its_volume_is_refused_before_the_download(built, fetch, pod):
    with pytest.raises(RepositoryError, match=r"magika/1: 34\.2 KiB by checksums\.json, and the volume at .* holds 1000 bytes"):
        fetch(built, limit=1000)
    assert list(pod.root.rglob("*")) == []


def test_a_node_without_room_is_named_before_the_download(built, fetch, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(RepositoryError, match=r"34\.2 KiB are needed, and the node has 10 bytes free"):
        fetch(built)


def test_a_volume_that_cannot_be_written_is_an_error_about_the_volume_not_about_the_store(built, fetch, pod):
    pod.folder(ONE).parent.mkdir()
    pod.folder(ONE).write_bytes(b"a file where a folder must be")
    with pytest.raises(RepositoryError, match="pod/magika/1") as caught:
        fetch(built)
    assert "pod's volume" in caught.value.hint


def test_a_version_that_is_not_published_lists_those_that_are(built, bucket, said, fetch):
    publish(built, bucket, [TWO], said.append)
    with pytest.raises(RepositoryError, match="has no version magika/1; versions there are: magika/2"):
        fetch(bucket)


def test_a_pod_on_a_node_that_has_the_files_downloads_nothing(built, bucket, said, tmp_path):
    publish(built, bucket, [ONE], said.append)
    (tmp_path / "node").mkdir()
    steps = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        step = Fetch(bucket, tmp_path / name, LIMIT, said.append, Cache(tmp_path / "node", LIMIT, said.append))
        step.run([ONE])
        verify(VolumeStore(tmp_path / name), ONE)
        steps.append(step)
    assert [step.downloaded for step in steps] == [TOTAL, 0]
    assert "magika/1/model.onnx (file 1 of 3): from the node's cache, 34.2 KiB" in said


def test_without_a_usable_cache_the_fetch_goes_on_and_says_so_once(built, fetch, said, pod, tmp_path):
    fetch(built, cache=Cache(tmp_path / "no-such-folder", LIMIT, said.append))
    verify(pod, ONE)
    assert len([line for line in said if line.startswith("goes on without the node's cache: ")]) == 1


def test_a_corrupt_file_does_not_get_into_the_cache(built, fetch, said, tmp_path):
    (tmp_path / "node").mkdir()
    (built.folder(ONE) / "model.py").write_bytes(b"c0de")
    with pytest.raises(RepositoryError, match="is damaged"):
        fetch(built, cache=Cache(tmp_path / "node", LIMIT, said.append))
    assert [path.name for path in (tmp_path / "node").iterdir() if path.is_file()] == [hashlib.sha256(FILES["model.onnx"]).hexdigest()]


def test_several_models_of_one_deployment_may_share_a_file(built, fetch, pod, tmp_path):
    both = make_repository(tmp_path / "both", {"decode/1": FILES, "read/3": FILES})
    fetch(both, *both.versions())
    verify(pod, VersionRef("decode", 1))
    verify(pod, VersionRef("read", 3))


def test_an_ensemble_which_has_no_files_is_fetched_with_its_steps(target, said, fetch, pod, tmp_path):
    both = make_repository(tmp_path / "both", {"ocr/1": {}, "ocr_text/1": FILES})
    publish(both, target, both.versions(), said.append)
    fetch(target, *both.versions())
    for ref in both.versions():
        verify(pod, ref)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


EXPECTED = files_sha256({name: code_sha256(content) if name.endswith(".py") else sha256(content) for name, content in FILES.items()})


def test_a_store_that_holds_what_the_stack_was_made_for_is_fetched(built, target, said, fetch, pod):
    publish(built, target, [ONE], said.append)
    fetch(target, expected={ONE: EXPECTED})
    verify(pod, ONE)


@pytest.mark.parametrize(("name", "content"), [("model.onnx", b"poisoned"), ("model.py", b"import os"), ("added.bin", b""), ("model.onnx", None)])
def test_a_store_that_only_agrees_with_itself_is_refused_before_the_download(target, fetch, pod, tmp_path, name, content):
    """Files and checksums.json fit together, and are another artefact than the registered one."""
    files = {file: data for file, data in {**FILES, name: content}.items() if data is not None}
    publish(make_repository(tmp_path / "other", {"magika/1": files}), target, [ONE], print)
    with pytest.raises(
        RepositoryError, match=rf"magika/1 is not the version that the stack was made for: expected artefact {EXPECTED}, found"
    ) as refused:
        fetch(target, expected={ONE: EXPECTED})
    assert f"saved/variables.index {sha256(FILES['saved/variables.index'])[:12]}" in refused.value.message
    assert "publish that as a new version" in refused.value.hint
    assert list(pod.root.rglob("*")) == []


def test_code_that_is_not_what_its_store_lists_proves_nothing(built, fetch):
    (built.folder(ONE) / "model.py").write_bytes(b"co #")
    with pytest.raises(RepositoryError, match=r"model\.py is damaged"):
        fetch(built, expected={ONE: EXPECTED})


@pytest.mark.parametrize("text", ["magika/1@sha256:", "magika/1@sha256:abc", f"magika/1@sha256:{'F' * 64}", "magika@sha256:" + "0" * 64, "magika/0"])
def test_what_names_no_version_or_no_hash_is_refused(text):
    with pytest.raises(ValueError, match="write <model>/<number>"):
        ExpectedVersion.parse(text)
