"""What holds for every repository, every damage and every order of fetches."""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from serving.model_manifest import MODEL_NAME
from serving.model_sources import FILE_NAME
from serving.repository.cache import Cache
from serving.repository.checksums import Checksums, FileEntry, VersionRef, parse_checksums
from serving.repository.errors import RepositoryError
from serving.repository.store import verify
from serving.repository.tar import TarStore, write_tar
from tests.unit.serving.repository.conftest import make_repository
from tests.unit.serving.repository.test_cache import Download, entry

LIMIT = 1000
NAMES = st.text("aZ0_.-/", min_size=1, max_size=12)
ENTRIES = st.tuples(st.binary(min_size=32, max_size=32).map(bytes.hex), st.integers(0, 2**50)).map(
    lambda pair: FileEntry(sha256=pair[0], size_bytes=pair[1])
)
CHECKSUM_FILES = st.tuples(
    NAMES.filter(MODEL_NAME.fullmatch), st.integers(1, 10**9), st.dictionaries(NAMES.filter(FILE_NAME.fullmatch), ENTRIES, max_size=5)
).map(lambda parts: Checksums(model=parts[0], version=parts[1], files=parts[2]))
# Names on a disk are shorter, and none is another's folder.
FILES = st.dictionaries(st.sampled_from(["model.onnx", "a.py", "saved/variables.index"]), st.binary(max_size=2000), min_size=1, max_size=3)


@settings(max_examples=30)
@given(CHECKSUM_FILES)
def test_checksums_are_read_as_they_were_written(checksums):
    assert parse_checksums(checksums.render(), checksums.ref, "place") == checksums
    assert VersionRef.parse(str(checksums.ref)) == checksums.ref


@settings(max_examples=30)
@given(st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)))
def test_whatever_lies_in_a_checksums_file_is_read_or_refused(content):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    with suppress(RepositoryError):
        parse_checksums(text, VersionRef("magika", 1), "place")


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["..", ".", "/", "a", "a.b", "-", "\n"])).map("".join))
def test_no_name_that_is_taken_leads_out_of_the_folder_it_is_written_to(name):
    root = Path("/repository/model/1")
    listing = {"model": "m", "version": 1, "files": {name: {"sha256": "0" * 64, "sizeBytes": 0}}}
    with suppress(RepositoryError):
        parse_checksums(json.dumps(listing).encode(), VersionRef("m", 1), "place")
        assert Path(os.path.normpath(root / name)).is_relative_to(root)
        assert (root / name).name


@settings(max_examples=30)
@given(FILES, st.data())
def test_a_changed_byte_of_a_backup_never_passes_for_the_content(files, data):
    """Either the damage is found, or it was in the padding and the content is what was kept."""
    with tempfile.TemporaryDirectory() as folder:
        built = make_repository(Path(folder, "built"), {"magika/1": files})
        write_tar(built, built.versions(), Path(folder, "backup.tar"))
        content = bytearray(Path(folder, "backup.tar").read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        Path(folder, "backup.tar").write_bytes(content)
        with suppress(RepositoryError):
            store = TarStore(Path(folder, "backup.tar"))
            assert verify(store, VersionRef("magika", 1)) == verify(built, VersionRef("magika", 1))


@settings(max_examples=30)
@given(st.lists(st.integers(0, 20), max_size=20))
def test_a_cache_never_holds_more_than_its_size_and_gives_what_was_asked_for(order):
    contents = [bytes([number]) * (number * 50) for number in range(21)]
    with tempfile.TemporaryDirectory() as folder:
        node = Path(folder, "node")
        node.mkdir()
        for number in order:
            Cache(node, LIMIT, lambda _: None).take(entry(contents[number]), Path(folder, "pod"), Download(contents[number]))
            assert Path(folder, "pod").read_bytes() == contents[number]
            assert sum(path.stat().st_size for path in node.iterdir() if path.is_file()) <= LIMIT
