"""Bodies as they arrive: limited while they do, a plain one whole, a multipart one part by part. Nothing is written to a disk."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.message import Message
from typing import TYPE_CHECKING, Protocol

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from serving.front.faults import bad_request, too_large

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MULTIPART = "multipart/form-data"
# A part has two or three header fields; one of this size is no file name.
MAX_PART_HEADER_BYTES = 8192


class Chunks(Protocol):
    """A body: chunks until its end."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...


@dataclass
class Part:
    """A part of a multipart body; `filename` None: a field of the form, not a file."""

    filename: str | None = None
    content: bytearray = field(default_factory=bytearray)


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


class PartReader:
    """The parts of a multipart body, one by one; what is wrong with it is a RequestFault 400, a part above `limit` bytes 413."""

    def __init__(self, content_type: str, limit: int) -> None:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if not boundary:
            raise bad_request("Content-Type multipart/form-data names no boundary")
        self._limit = limit
        self._part = Part()
        self._header = (bytearray(), bytearray())
        self._done: list[Part] = []
        self._ended = False
        callbacks: MultipartCallbacks = {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._extend_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._extend_header(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_part_data": self._extend_part,
            "on_part_end": lambda: self._done.append(self._part),
            "on_end": self._end,
        }
        try:
            self._parser = MultipartParser(boundary, callbacks)
        except FormParserError:
            raise bad_request("the boundary of the multipart body cannot be used") from None

    async def parts(self, chunks: Chunks) -> AsyncIterator[Part]:
        """Each part once it is whole."""
        async for chunk in chunks:
            try:
                self._parser.write(chunk)
            except FormParserError:
                raise bad_request("the body is no multipart/form-data with the boundary that Content-Type names") from None
            done, self._done = self._done, []
            for part in done:
                yield part
        if not self._ended:
            raise bad_request("the multipart body ends before its closing boundary")

    def _begin(self) -> None:
        self._part = Part()

    def _end(self) -> None:
        self._ended = True

    def _extend_header(self, which: int, data: bytes) -> None:
        self._header[which].extend(data)
        if sum(map(len, self._header)) > MAX_PART_HEADER_BYTES:
            raise bad_request(f"a part's header has more than {MAX_PART_HEADER_BYTES} bytes")

    def _end_header(self) -> None:
        name, value = (bytes(each) for each in self._header)
        self._header = (bytearray(), bytearray())
        if name.strip().lower() == b"content-disposition":
            self._part.filename = _filename(value)

    def _extend_part(self, data: bytes, start: int, end: int) -> None:
        self._part.content.extend(data[start:end])
        if len(self._part.content) > self._limit:
            raise too_large(self._limit)


def _filename(disposition: bytes) -> str | None:
    """The file name of a part; None for a field. Also in the form of RFC 2231, which RFC 7578 forbids and clients send for names beyond ASCII."""
    _, options = parse_options_header(disposition)
    if (filename := options.get(b"filename")) is not None:
        return filename.decode("utf-8", errors="replace")
    if b"filename*" not in disposition.lower():
        return None
    message = Message()
    message["Content-Disposition"] = disposition.decode("latin-1")
    try:
        return message.get_filename()
    except (ValueError, LookupError, TypeError):
        # Some name there is: the part is a file all the same.
        return ""


async def read_plain(chunks: Chunks) -> bytes:
    """The whole body."""
    body = bytearray()
    async for chunk in chunks:
        body.extend(chunk)
    return bytes(body)


async def read_one_file(chunks: Chunks, content_type: str, limit: int) -> bytes:
    """The content of the one file of a multipart body; RequestFault 400 when there is none or another. Fields beside it are read over."""
    files = [part.content async for part in PartReader(content_type, limit).parts(chunks) if part.filename is not None]
    if len(files) != 1:
        raise bad_request(f"the form has {len(files)} files; send one (curl -F file=@NAME), or several to the batch endpoint")
    return bytes(files[0])
