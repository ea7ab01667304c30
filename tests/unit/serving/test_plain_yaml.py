"""YAML that people write: read as it looks, or refused with its place."""

import json
from contextlib import suppress
from itertools import pairwise

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from serving import plain_yaml
from serving.model_manifest import MODELS_DIR

LEVELS = "abcdefgh"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(f"{c}: &{c} [{', '.join([f'*{b}'] * 9)}]\n" for b, c in pairwise(LEVELS))


@pytest.mark.parametrize(
    "text", ["no", "yes", "On", "010", "0o10", "0x1f", "1:30", "1_000", "2024-01-31", "2024-13-45", ".nan", ".inf", "1e400", "9" * 5000]
)
def test_what_yaml_1_1_takes_for_another_kind_of_value_is_text(text):
    assert plain_yaml.read(f"a: {text}") == {"a": text}


@pytest.mark.parametrize(("text", "value"), [("true", True), ("~", None), ("", None), ("-5", -5), ("0.5", 0.5), ("1e3", 1000.0), ("'1'", "1")])
def test_scalars_of_json_are_what_they_are(text, value):
    assert plain_yaml.read(f"a: {text}") == {"a": value}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: a\nname: b", "key 'name' stands here twice: keep one"),
        ("a: {b: 1, b: 1}", "key 'b' stands here twice"),
        ("1: a", "a key is text"),
        ("? [a]\n: b", "a key is text"),
        ("a: !!int 5", "tag tag:yaml.org,2002:int"),
        ("!!python/object/apply:os.abort []", "write the value without it"),
        ("&a [*a]", r"alias \*a stands inside of what it names"),
        (BOMB, "more than 50000 values"),
        ("[" * 500, "more than 100 levels"),
        ("{a: " * 500, "more than 100 levels"),
        ("<<: 5", "expected a mapping"),
        ("a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b}", "a map that merges another is merged"),
        ("a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: [*a, *b]}", "a map that merges another is merged"),
        ("a: [", "line 1, column 5"),
        ("a: \0", "unacceptable character"),
        ("a: 1\n---\nb: 1", "single document"),
    ],
)
def test_what_would_be_lost_or_grow_without_bound_is_refused_with_its_place(text, reason):
    with pytest.raises(ValueError, match=reason):
        plain_yaml.read(text)


def test_aliases_and_merges_are_read_within_those_bounds():
    assert plain_yaml.read("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a]") == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": [{"x": 1, "y": 2}],
    }


@pytest.mark.parametrize("path", sorted(MODELS_DIR.glob("*/model.yaml")), ids=lambda path: path.parent.name)
def test_every_model_says_what_it_said_to_yaml_1_1(path):
    assert plain_yaml.read(path.read_text()) == yaml.safe_load(path.read_text())


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**39), 10**39)
    | st.floats(-1e15, 1e15, allow_nan=False, allow_subnormal=False).map(lambda x: round(x, 6))
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES)
def test_json_is_read_as_json(value):
    assert plain_yaml.read(json.dumps(value, ensure_ascii=False)) == value


@given(text=st.text(st.sampled_from("a1:&*!<-?[]{},'\"\n |>#~.0e"), max_size=40))
def test_any_text_is_read_or_refused(text):
    with suppress(ValueError):
        plain_yaml.read(text)
