"""Places in a stack file, spelt as a person spells them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.key_paths import allowed_keys, closest, dotted, keys_of, value_at
from stacks.loader import config_schema

KEYS = st.text(alphabet="abcdefgh", min_size=1, max_size=4)
DOCUMENTS = st.recursive(st.integers(), lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3), max_leaves=8)


@pytest.mark.parametrize(
    ("keys", "text"),
    [(["models", "magika", "canary"], "models.magika.canary"), (["a", 0, "b"], "a[0].b"), (["a", "b.c"], 'a["b.c"]'), ([], "")],
)
def test_paths_are_spelt_as_pulumi_takes_them(keys: list[str | int], text: str) -> None:
    assert dotted(keys) == text


@pytest.mark.parametrize(
    ("location", "keys"),
    [
        (("source", "module", "vrsion"), ["source", "vrsion"]),
        (("source", "module", "kind"), ["source", "kind"]),
        (("models", "Bad", "[key]"), ["models", "Bad"]),
        (("models", "Bad", "missing"), ["models", "Bad", "missing"]),
        (("names", 1), ["names", 1]),
        (("scalar", "int"), ["scalar"]),
    ],
)
def test_what_pydantic_puts_between_the_keys_is_left_out(location: tuple[str | int, ...], keys: list[str | int]) -> None:
    document = {"source": {"kind": "module"}, "models": {"Bad": {}}, "names": ["a", "b"], "scalar": 1}
    assert keys_of(location, document) == keys


def leaves(document: Any, above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], int]]:
    if isinstance(document, dict):
        return [leaf for key, value in document.items() for leaf in leaves(value, (*above, key))]
    return [(above, document)]


@given(DOCUMENTS)
def test_a_path_that_exists_is_kept_whole_and_leads_to_its_value(document: Any) -> None:
    for location, value in leaves(document):
        assert keys_of(location, document) == list(location)
        assert value_at(keys_of(location, document), document) == value


def test_a_union_allows_the_keys_of_all_its_members() -> None:
    assert allowed_keys(["addons", "istio", "source"], config_schema()) == ["kind", "repository", "version"]


def test_every_model_allows_the_same_keys_whatever_its_name() -> None:
    assert allowed_keys(["models", "anything"], config_schema()) == allowed_keys(["models", "magika"], config_schema()) != []


def test_nothing_is_known_below_a_scalar() -> None:
    assert allowed_keys(["environment", "x"], config_schema()) == []


@pytest.mark.parametrize(("typed", "meant"), [("TritonName", "tritonName"), ("triton_name", "tritonName"), ("verison", "version"), ("zzz", None)])
def test_the_likely_meaning_ignores_case_and_separators(typed: str, meant: str | None) -> None:
    assert closest(typed, ["tritonName", "version", "canary"]) == meant
