"""What is stored: torn and damaged parts, changed inputs, a second writer."""

import errno
import fcntl
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.batch.__main__ import Exit, main
from serving.batch.directory import DirectoryStorage
from serving.batch.errors import LockError
from serving.batch.ledger import read_ledger
from serving.batch.records import Record
from serving.batch.storage import Item, batches, shard_of

OUT = "0-of-1"


def lines(output):
    return [line for part in sorted(output.rglob("part-*.jsonl")) for line in part.read_bytes().splitlines()]


def first_part(output):
    return output / OUT / "part-000001.jsonl"


def test_a_torn_last_line_is_taken_off_and_its_item_asked_again(batch, triton, inputs, tmp_path, capsys):
    batch()
    part = first_part(tmp_path / "out")
    part.write_bytes(part.read_bytes()[:-20])
    assert main(["check", str(inputs), str(tmp_path / "out")]) == Exit.REFUSED
    assert "1 missing" in (told := capsys.readouterr().out)
    assert f"1 torn ({OUT}/part-000001.jsonl)" in told
    assert batch() == Exit.DONE
    assert "the last line of part-000001.jsonl was torn" in capsys.readouterr().err
    assert sorted(triton.asked.values()) == [1] * 59 + [2]
    assert main(["check", str(inputs), str(tmp_path / "out")]) == Exit.DONE


def test_a_damaged_line_is_named_and_nothing_is_asked(batch, triton, tmp_path, capsys):
    batch()
    part = first_part(tmp_path / "out")
    part.write_bytes(part.read_bytes().replace(b'"id"', b'"key"', 1))
    asked = triton.requests
    assert batch() == Exit.REFUSED
    assert "part-000001.jsonl, line 1 cannot be read" in capsys.readouterr().err
    assert triton.requests == asked


def test_a_missing_part_and_a_repeated_record_are_named(batch, tmp_path, capsys):
    batch("--part-items", "8")
    part = first_part(tmp_path / "out")
    second = part.with_name("part-000002.jsonl")
    whole = second.read_bytes()
    second.write_bytes(whole + part.read_bytes())
    assert batch() == Exit.REFUSED
    assert "has a second record of" in capsys.readouterr().err
    second.write_bytes(whole)
    part.unlink()
    assert batch() == Exit.REFUSED
    assert "part-000001.jsonl is missing" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["refuse", "keep", "redo"])
def test_changed_and_gone_inputs_are_named_kept_or_asked_again(batch, triton, inputs, tmp_path, capsys, how):
    batch()
    (inputs / "a" / "001.txt").write_bytes(b"another content")
    (inputs / "a" / "002.txt").unlink()
    assert batch("--changed", how) == (Exit.REFUSED if how == "refuse" else Exit.DONE)
    told = capsys.readouterr().err
    assert ("1 changed (a/001.txt); 1 gone (a/002.txt)" in told) == (how == "refuse")
    assert triton.asked[b"another content"] == (how == "redo")
    assert len(lines(tmp_path / "out")) == (59 if how == "redo" else 60)
    whole = main(["check", str(inputs), str(tmp_path / "out")]) == Exit.DONE
    assert whole == (how == "redo")
    assert "1 changed" in capsys.readouterr().out or whole


def test_an_input_that_changes_between_listing_and_reading_is_recorded_as_such(batch, triton, inputs, tmp_path):
    def change(number):
        if number == 1:
            (inputs / "b" / "057.txt").write_bytes(b"changed meanwhile")

    triton.on_request = change
    assert batch("--in-flight", "1") == Exit.ITEMS_FAILED
    failed = [record for line in lines(tmp_path / "out") if "error" in (record := json.loads(line))]
    assert [(record["id"], record["error"]["message"]) for record in failed] == [("b/057.txt", "changed after it was listed")]
    assert batch("--changed", "redo") == Exit.DONE
    assert triton.asked[b"changed meanwhile"] == 1


def test_a_second_client_of_the_same_output_is_refused_with_the_name_of_the_first(batch, tmp_path, capsys):
    with DirectoryStorage(tmp_path / "out" / OUT).lock():
        assert batch() == Exit.IN_USE
    assert "is being written by process" in capsys.readouterr().err
    assert batch() == Exit.DONE


def test_a_writer_without_the_lock_still_stores_nothing_twice(tmp_path):
    """A lock can be lost: a file system without flock, a lease that ran out."""
    one, other = (read_ledger(DirectoryStorage(tmp_path), repair=True) for _ in range(2))
    one.append([Record(id="a", fingerprint="1", version="1", outputs={})])
    with pytest.raises(LockError, match=r"part-000001\.jsonl was written by another client"):
        other.append([Record(id="a", fingerprint="1", version="2", outputs={})])
    assert len(lines(tmp_path)) == 1


def test_what_a_killed_writer_left_half_written_is_cleared_and_never_read(batch, tmp_path):
    folder = tmp_path / "out" / OUT
    folder.mkdir(parents=True)
    (folder / ".part-000001.jsonl.7.partial").write_bytes(b'{"id": "half')
    assert batch() == Exit.DONE
    assert not list(folder.glob(".*"))


def test_an_output_that_cannot_be_written_is_said_so(batch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert batch(output=tmp_path / "file" / "out") == Exit.REFUSED
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_a_name_that_is_no_utf_8_is_an_item_like_others(batch, triton, inputs, tmp_path):
    Path(str(inputs) + "/\udcff.bin").write_bytes(b"odd name")
    assert batch() == Exit.DONE
    assert batch() == Exit.DONE
    assert triton.asked[b"odd name"] == 1


def test_a_name_that_is_no_utf_8_is_told_where_standard_output_takes_text_alone(batch, inputs, tmp_path, monkeypatch):
    """As Python opens it for a pipe: standard error replaces what its encoding lacks, standard output refuses."""
    Path(str(inputs) + "/\udcff.bin").write_bytes(b"odd name")
    Path(str(inputs) + "/é.bin").write_bytes(b"odd name")
    batch()
    for path in inputs.glob("*.bin"):
        path.unlink()
    for encoding, named in (("utf-8", "\\udcff.bin, é.bin"), ("ascii", "\\udcff.bin, \\xe9.bin")):
        told = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(told, encoding=encoding, errors="strict", write_through=True))
        assert main(["check", str(inputs), str(tmp_path / "out")]) == Exit.REFUSED
        assert {*named.split(", ")} <= {*told.getvalue().decode(encoding).split("2 unknown (")[1].partition(")")[0].split(", ")}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS], ids=errno.errorcode.get)
def test_an_output_without_hard_links_is_refused_before_anything_is_asked(batch, triton, tmp_path, monkeypatch, capsys, number):
    """SMB and mounted buckets have none, and permissions or space would not help."""

    def refuse(self, target):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert batch() == Exit.REFUSED
    told = capsys.readouterr().err
    assert "file system without hard links" in told
    assert "another volume" in told
    assert triton.requests == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ESTALE, errno.EIO], ids=errno.errorcode.get)
def test_a_volume_that_is_full_or_away_is_tried_again(batch, tmp_path, monkeypatch, capsys, number):
    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", refuse)
        assert batch() == Exit.NO_STORE
    assert os.strerror(number) in capsys.readouterr().err
    assert batch() == Exit.DONE
    assert len(lines(tmp_path / "out")) == 60


def test_an_input_volume_that_is_away_is_no_bad_item(batch, tmp_path, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patch:
        patch.setattr("os.fstat", refuse)
        assert batch() == Exit.NO_STORE
    assert batch() == Exit.DONE


@pytest.mark.parametrize("content", ["", "[]", '{"shards"'])
def test_settings_that_were_damaged_are_named(batch, inputs, tmp_path, capsys, content):
    batch()
    (tmp_path / "out" / "batch.json").write_text(content)
    assert batch() == Exit.REFUSED
    assert main(["check", str(inputs), str(tmp_path / "out")]) == Exit.REFUSED
    assert capsys.readouterr().err.count("restore batch.json") == 2


def test_no_name_makes_a_file_less_of_an_input(batch, triton, inputs, tmp_path):
    for name in ("lock", ".hidden", "part-000001.jsonl", "x.partial", "batch.json"):
        (inputs / name).write_bytes(f"named {name}".encode())
    assert batch() == Exit.DONE
    assert len(lines(tmp_path / "out")) == 65
    assert triton.asked[b"named lock"] == triton.asked[b"named x.partial"] == 1


def test_a_link_to_nothing_is_an_item_that_failed_and_a_linked_folder_is_none(batch, inputs, tmp_path):
    (inputs / "gone").symlink_to(tmp_path / "nowhere")
    (inputs / "circle").symlink_to(inputs)
    assert batch() == Exit.ITEMS_FAILED
    [failed] = [record for line in lines(tmp_path / "out") if "error" in (record := json.loads(line))]
    assert (failed["id"], failed["error"]) == ("gone", {"code": "UNREADABLE", "message": "cannot be read: No such file or directory"})
    assert len(lines(tmp_path / "out")) == 61
    (inputs / "gone").unlink()
    (inputs / "gone").write_bytes(b"there now")
    assert batch("--changed", "redo") == Exit.DONE


def test_the_lock_is_a_flock_which_dies_with_its_process(tmp_path):
    with DirectoryStorage(tmp_path).lock(), (tmp_path / "lock").open() as stream, pytest.raises(BlockingIOError):
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists, max_leaves=5)


@given(st.text(), st.text(), st.dictionaries(st.text(), JSON))
def test_a_record_is_one_line_and_reads_back_as_it_was(item_id, fingerprint, outputs):
    record = Record(id=item_id, fingerprint=fingerprint, version="1", outputs=outputs)
    line = record.line()
    assert line.count(b"\n") == 1
    assert Record.parse(line) == record


@given(st.binary())
def test_a_line_that_is_no_record_is_refused_and_never_crashes(line):
    with pytest.raises(ValueError):
        Record.parse(line)


@given(st.lists(st.integers(0, 50)), st.integers(1, 5), st.integers(1, 60))
def test_batches_hold_every_item_in_order_within_both_bounds(sizes, most, largest):
    items = [Item(str(number), size, "") for number, size in enumerate(sizes)]
    made = list(batches(items, most, largest))
    assert [item for batch in made for item in batch] == items
    assert all(len(batch) <= most and (len(batch) == 1 or sum(item.size + 4 for item in batch) <= largest) for batch in made)


@given(st.text(), st.integers(1, 100))
def test_an_item_belongs_to_one_shard_and_always_to_the_same(item_id, shards):
    assert 0 <= shard_of(item_id, shards) < shards
    assert shard_of(item_id, shards) == shard_of(item_id, shards)


def test_an_output_without_its_settings_cannot_be_checked(inputs, tmp_path, capsys):
    assert main(["check", str(inputs), str(tmp_path / "nothing")]) == Exit.REFUSED
    assert "batch.json is missing" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["ftp://host/x", "s3:///x"])
def test_a_place_that_is_none_is_refused(inputs, text, capsys):
    assert main(["check", str(inputs), text]) == Exit.REFUSED
    assert text in capsys.readouterr().err


def test_a_source_that_is_not_there_is_refused(batch, tmp_path, capsys):
    assert batch(source=tmp_path / "nowhere") == Exit.REFUSED
    assert "is no directory" in capsys.readouterr().err


def test_a_record_that_was_stored_already_is_not_stored_again(tmp_path):
    """A task that waited for a part and was cancelled does not know whether it was stored, and gives its records once more."""
    ledger = read_ledger(DirectoryStorage(tmp_path), repair=True)
    one, other = (Record(id=name, fingerprint="1", version="1", outputs={}) for name in "ab")
    assert ledger.append([one]) == [one]
    assert ledger.append([one, other]) == [other]
    assert ledger.append([one, other]) == []
    assert len(lines(tmp_path)) == 2
    assert ledger.parts == 2
