"""A line of the output: what was answered about one input, or why nothing was."""

import json
from dataclasses import dataclass
from typing import Any, Self

from serving.batch.storage import Item


@dataclass(frozen=True, kw_only=True)
class Record:
    """`outputs` by tensor name, or `error` with `code` and `message`; `fingerprint` tells which content of the input this is about."""

    id: str
    fingerprint: str
    version: str = ""
    outputs: dict[str, Any] | None = None
    error: dict[str, str] | None = None

    @classmethod
    def failed(cls, item: Item, code: str, message: str) -> Self:
        return cls(id=item.id, fingerprint=item.fingerprint, error={"code": code, "message": message})

    def line(self) -> bytes:
        """One line of JSON in ASCII: a file name need not be UTF-8, and no character may end the line early."""
        content: dict[str, Any] = {"id": self.id, "fingerprint": self.fingerprint}
        content |= {"error": self.error} if self.error is not None else {"version": self.version, "outputs": self.outputs}
        return json.dumps(content, allow_nan=False).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """The record behind a line; ValueError when it is none."""
        content = json.loads(line)
        if not isinstance(content, dict) or not {"id", "fingerprint"} <= content.keys() <= {"id", "fingerprint", "version", "outputs", "error"}:
            raise ValueError("no record of a batch")
        if ("error" in content) == ("outputs" in content) or not isinstance(content["id"], str):
            raise ValueError("a record has an id and either outputs or an error")
        return cls(**content)
