"""The labelled set: the same files give the same set, and no near copy of a calibration file judges."""

import pytest

from serving.optimise import corpus
from serving.optimise.errors import OptimisationError
from serving.optimise.examples import spread

LABELS = {"py": frozenset({"python"}), "md": frozenset({"markdown"})}


@pytest.fixture
def roots(tmp_path):
    """Two roots with twenty folders of four Python files each, and what must not be chosen."""
    for root in ("one", "two"):
        for folder in range(20):
            place = tmp_path / root / f"folder{folder}"
            place.mkdir(parents=True)
            for number in range(4):
                (place / f"file{number}.PY").write_text(f"# {root} {folder} {number}\n" + "x = 1\n" * 20)
    place = tmp_path / "one" / "others"
    place.mkdir()
    (place / "short.py").write_text("x")
    (place / "long.py").write_bytes(b"x" * (corpus.LARGEST_BYTES + 1))
    (place / "unknown.xyz").write_text("x" * 100)
    (place / ".py").write_text("hidden, without an extension" * 10)
    (place / "link.py").symlink_to(tmp_path / "one" / "folder0" / "file0.PY")
    (place / "dangling.py").symlink_to("nowhere")
    (place / "copy.py").write_bytes((tmp_path / "two" / "folder0" / "file0.PY").read_bytes())
    return {"one": tmp_path / "one", "two": tmp_path / "two"}


def names(examples):
    return [example.name for example in examples]


def test_the_order_in_which_files_are_found_does_not_matter(roots, monkeypatch):
    first = corpus.select(roots, LABELS, 50)
    found = corpus._files
    monkeypatch.setattr(corpus, "_files", lambda root: reversed(list(found(root))))
    second = corpus.select(dict(reversed(roots.items())), LABELS, 50)
    assert (first.sha256, names(first.evaluation)) == (second.sha256, names(second.evaluation))


def test_calibration_and_evaluation_share_no_folder(roots):
    chosen = corpus.select(roots, LABELS, 1000)
    folders = [{name.rpartition("/")[0] for name in names(part)} for part in (chosen.calibration, chosen.evaluation)]
    assert folders[0] & folders[1] == set()
    assert min(map(len, folders)) > 1


def test_a_folder_gives_few_files_and_no_content_comes_twice(roots):
    chosen = corpus.select(roots, LABELS, 1000)
    everything = [*chosen.calibration, *chosen.evaluation]
    folders = names(everything)
    assert max(sum(name.startswith(f"{root}/folder{number}/") for name in folders) for root in roots for number in range(20)) == corpus.PER_FOLDER
    assert len({example.content for example in everything}) == len(everything)


def test_only_whole_files_of_known_types_are_chosen(roots):
    chosen = corpus.select(roots, LABELS, 1000)
    others = [name for name in names([*chosen.calibration, *chosen.evaluation]) if "/others/" in name]
    assert set(others) <= {"one/others/copy.py"}
    assert chosen.kinds() == {"py": len(chosen.evaluation)}


def test_an_extension_gives_no_more_than_was_asked_for(roots):
    chosen = corpus.select(roots, LABELS, 30)
    assert len(chosen.calibration) + len(chosen.evaluation) == 30


def test_another_content_under_the_same_name_is_another_set(roots):
    before = corpus.select(roots, LABELS, 1000)
    for path in roots["one"].rglob("file*.PY"):
        path.write_text(path.read_text() + "# edited\n")
    assert corpus.select(roots, LABELS, 1000).sha256 != before.sha256


def test_roots_without_enough_files_are_refused_by_name(tmp_path):
    with pytest.raises(OptimisationError, match=rf"0 files .* under {tmp_path}"):
        corpus.select({"empty": tmp_path}, LABELS, 10)


@pytest.mark.parametrize(("count", "expected"), [(None, list(range(10))), (20, list(range(10))), (5, [0, 2, 4, 6, 8]), (3, [0, 3, 6])])
def test_a_part_of_the_examples_is_spread_over_all(count, expected):
    assert list(spread(list(range(10)), count)) == expected
