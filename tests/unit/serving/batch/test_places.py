"""Where inputs, output and the merged file may lie."""

import pytest

from serving.batch.__main__ import Exit, main
from serving.batch.places import file_place


@pytest.mark.parametrize("output", ["{inputs}/../in/out", "{link}/out", "{link}"])
def test_no_spelling_of_a_path_puts_answers_among_the_inputs(batch, inputs, tmp_path, capsys, output):
    (tmp_path / "link").symlink_to(inputs)
    assert batch(output=output.format(inputs=inputs, link=tmp_path / "link")) == Exit.REFUSED
    assert "lie inside each other" in capsys.readouterr().err
    assert len([path for path in inputs.rglob("*") if path.is_file()]) == 60


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("{out}/batch.json", "lies inside"),
        ("{out}/0-of-1/part-000001.jsonl", "lies inside"),
        ("{inputs}/all.jsonl", "lies inside"),
        ("{out}/", "names no file"),
        ("{tmp}", "is a directory"),
        ("s3://bucket", "names no file"),
        ("s3://", "names no file"),
        ("", "names no file"),
    ],
)
def test_a_merge_overwrites_nothing_that_it_reads_and_needs_a_file(batch, inputs, tmp_path, capsys, to, reason):
    assert batch() == Exit.DONE
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["merge", str(inputs), str(tmp_path / "out"), "--to", to.format(out=tmp_path / "out", inputs=inputs, tmp=tmp_path)]) == Exit.REFUSED
    assert reason in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_merge_goes_where_an_absolute_path_says(batch, inputs, tmp_path, monkeypatch):
    """`/all.jsonl` is no file of the folder one happens to be in."""
    storage, name = file_place("/all.jsonl", None, beside=())
    assert (str(storage), name) == ("/", "all.jsonl")
    monkeypatch.chdir(tmp_path)
    assert batch() == Exit.DONE
    assert main(["merge", str(inputs), str(tmp_path / "out"), "--to", "all.jsonl"]) == Exit.DONE
    assert (tmp_path / "all.jsonl").exists()


def test_a_path_that_can_be_none_is_refused(batch, inputs, capsys):
    assert main(["check", str(inputs), "/" + "x" * 300]) == Exit.REFUSED
    assert batch(source="/" + "x" * 300) == Exit.REFUSED
    assert capsys.readouterr().err.count("error: ") == 2


def test_an_interrupt_before_anything_is_asked_is_no_crash(batch, monkeypatch, capsys):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("serving.batch.__main__.input_and_output", interrupted)
    assert batch() == 130
    assert "interrupted; the same command goes on from here" in capsys.readouterr().err
