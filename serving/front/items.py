"""The items of a batch request, one by one as its body arrives: lines of JSON, or the files of a form."""

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from serving.front.bodies import Chunks, PartReader
from serving.front.faults import RequestFault, bad_request, too_large

# Beside the content: the id, and the JSON around both.
LINE_OVERHEAD_BYTES = 4096
ID_CHARACTERS = 1024


@dataclass(frozen=True)
class Item:
    """The item at `index`, by the name its sender gave it, if any; its content, or why it has none."""

    index: int
    name: str | int | None
    content: bytes | RequestFault


async def json_items(chunks: Chunks, limit: int) -> AsyncIterator[Item]:
    """One item per line, empty lines apart: {"b64": "..."} or {"text": "..."}, and an "id" if one is wanted. A bad line is a bad item, no bad request."""
    index = 0
    async for line in lines(chunks, limit * 4 // 3 + LINE_OVERHEAD_BYTES):
        if line is not None and not line.strip():
            continue
        yield _item(index, line, limit)
        index += 1


async def file_items(form: PartReader, chunks: Chunks) -> AsyncIterator[Item]:
    """One item per file of the form, by its file name; fields are read over."""
    index = 0
    async for part in form.parts(chunks):
        if part.filename is not None:
            yield Item(index, part.filename[:ID_CHARACTERS], bytes(part.content))
            index += 1


async def lines(chunks: Chunks, limit: int) -> AsyncIterator[bytes | None]:
    """Lines without their ends; None for one of more than `limit` bytes, of which no more than that is ever held."""
    held, too_long = bytearray(), False
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line = None if too_long or len(held) + len(piece) > limit else bytes(held) + piece
            held, too_long = bytearray(), False
            yield line
        if too_long or len(held) + len(rest) > limit:
            held, too_long = bytearray(), True
        else:
            held += rest
    if too_long:
        yield None
    elif held:
        yield bytes(held)


def _item(index: int, line: bytes | None, limit: int) -> Item:
    if line is None:
        return Item(index, None, too_large(limit))
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return Item(index, None, bad_request("the line is no JSON"))
    if not isinstance(value, dict):
        return Item(index, None, bad_request('the line is no object; an item is {"b64": "..."} or {"text": "..."}'))
    name = value.get("id")
    if isinstance(name, bool) or not isinstance(name, str | int | None) or len(str(name)) > ID_CHARACTERS:
        return Item(index, None, bad_request(f"id is a string or a whole number of at most {ID_CHARACTERS} characters"))
    return Item(index, name, _content(value, limit))


def _content(value: dict[str, Any], limit: int) -> bytes | RequestFault:
    if unknown := sorted(value.keys() - {"id", "b64", "text"}):
        return bad_request(f"unknown key {unknown[0][:ID_CHARACTERS]!r}; an item has b64 or text, and an id if one is wanted")
    content = value.get("b64"), value.get("text")
    match content:
        case (str(encoded), None):
            try:
                decoded = base64.b64decode(encoded, validate=True)
            except ValueError:
                return bad_request("b64 is no base64")
        case (None, str(text)):
            # JSON can spell halves of surrogate pairs, which no file holds.
            decoded = text.encode("utf-8", errors="replace")
        case _:
            return bad_request("an item has either b64 or text, a string")
    return too_large(limit) if len(decoded) > limit else decoded
