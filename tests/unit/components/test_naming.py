"""Names that stay names however long their parts are."""

from hypothesis import given
from hypothesis import strategies as st

from components.naming import DNS_LABEL, DNS_LABEL_MAX, content_hash, k8s_name

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LETTERS_AND_DIGITS = f"{LETTERS}0123456789"
PART = st.builds("{}{}{}".format, st.sampled_from(LETTERS), st.text(f"{LETTERS_AND_DIGITS}-", max_size=60), st.sampled_from(LETTERS_AND_DIGITS))


def test_short_parts_are_joined_as_they_are():
    assert k8s_name("magika-v1", "config", "0123456789") == "magika-v1-config-0123456789"


@given(st.lists(PART, min_size=1, max_size=5))
def test_a_name_is_a_dns_label_of_allowed_length(parts):
    name = k8s_name(*parts)
    assert len(name) <= DNS_LABEL_MAX
    assert DNS_LABEL.fullmatch(name)


@given(PART, PART)
def test_names_that_are_cut_stay_apart(one, other):
    long = "a" * DNS_LABEL_MAX
    assert (k8s_name(long, one) == k8s_name(long, other)) == (one == other)


@given(st.text(), st.text())
def test_a_hash_changes_with_the_content_and_only_then(one, other):
    assert (content_hash(one) == content_hash(other)) == (one == other)
