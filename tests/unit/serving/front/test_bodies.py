"""Multipart bodies, however they are cut and whatever is wrong with them."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from serving.front.bodies import MAX_PART_HEADER_BYTES, PartReader, media_type, read_one_file
from serving.front.faults import RequestFault
from tests.unit.serving.front.house import as_chunks

TYPE = "multipart/form-data; boundary=limit"


def form(*files, end=b"--limit--\r\n"):
    parts = [
        b'--limit\r\nContent-Disposition: form-data; name="file"; filename="' + name + b'"\r\n\r\n' + content + b"\r\n" for name, content in files
    ]
    return b"".join(parts) + end


def read(body, cuts=(), limit=10_000, content_type=TYPE):
    chunks, rest = [], body
    for cut in cuts:
        chunks.append(rest[:cut])
        rest = rest[cut:]

    async def parts():
        return [(part.filename, bytes(part.content)) async for part in PartReader(content_type, limit).parts(as_chunks([*chunks, rest]))]

    return asyncio.run(parts())


@effort(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=60).filter(lambda b: b"--limit" not in b), max_size=4), st.lists(st.integers(1, 40), max_size=12))
def test_files_are_the_same_however_the_body_is_cut(contents, cuts):
    files = [(f"f{n}".encode(), content) for n, content in enumerate(contents)]
    assert read(form(*files) if files else b"--limit--\r\n", cuts) == [(name.decode(), content) for name, content in files]


@effort(max_examples=200, deadline=None)
@given(st.binary(max_size=120), st.text(st.characters(max_codepoint=255), max_size=30))
def test_any_bytes_under_any_type_are_parts_or_a_fault(body, boundary):
    for content_type, content in ((TYPE, body), (TYPE, form((b"a", b"b"))[: len(body)] + body), (f"multipart/form-data; boundary={boundary}", body)):
        with suppress(RequestFault):
            read(content, content_type=content_type)


def test_a_part_is_limited_and_so_is_its_header():
    with pytest.raises(RequestFault) as refused:
        read(form((b"a", b"x" * 101)), limit=100)
    assert refused.value.status == 413
    with pytest.raises(RequestFault) as refused:
        read(form((b"n" * (MAX_PART_HEADER_BYTES + 1), b"x")))
    assert refused.value.status == 400


def test_names_that_are_no_text_and_fields_without_a_name_are_read():
    assert read(form((b"\xff\xfe", b"x")))[0][1] == b"x"
    assert read(b"--limit\r\n\r\nx\r\n--limit--\r\n") == [(None, b"x")]


def test_a_body_that_breaks_off_is_a_fault_and_not_a_shorter_file():
    async def one(body):
        return await read_one_file(as_chunks([body]), TYPE, 100)

    assert asyncio.run(one(form((b"a", b"abc")))) == b"abc"
    for cut in range(1, len(form((b"a", b"abc"))) - 3):
        with pytest.raises(RequestFault):
            asyncio.run(one(form((b"a", b"abc"))[:cut]))


def test_media_types_are_compared_without_case_and_parameters():
    assert media_type(" Multipart/Form-Data ; boundary=x") == "multipart/form-data"


@pytest.mark.parametrize(
    ("parameter", "name"),
    [
        ("filename*=utf-8''na%C3%AFve.txt", "naïve.txt"),
        ("filename*0=na; filename*1=ive.txt", "naive.txt"),
        ("filename=plain; filename*=utf-8''other", "plain"),
        ("filename*=utf-8''%ff", "\N{REPLACEMENT CHARACTER}"),
        ("filename*=no-such-charset''a", "a"),
        ("filename*=", ""),
        ("filename* ;filename*0\t", ""),
        ('name="filename*"', None),
    ],
)
def test_a_file_whose_name_comes_in_extended_form_is_no_field(parameter, name):
    """What is taken for a field is read over: a batch would say that all its items were read (as psf/requests#4652 met it at other servers)."""
    assert read(f"--limit\r\nContent-Disposition: form-data; {parameter}\r\n\r\nx\r\n--limit--\r\n".encode()) == [(name, b"x")]
