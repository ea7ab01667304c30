"""Where a registry is: a SQLite file, or an MLflow server."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

REGISTRY_VARIABLE = "INFERENCE_PLATFORM_REGISTRY"
SQLITE = "sqlite:///"
ALLOWED = "sqlite:///<absolute path>, or the http(s):// address of an MLflow server"


@dataclass(frozen=True)
class Location:
    """`uri` may hold a password, so it is never shown; the text of a location is without."""

    uri: str

    @classmethod
    def parse(cls, text: str) -> "Location":
        """Raises ValueError, without the text, which may hold a password, for what is no place of a registry."""
        if text.startswith(SQLITE):
            path = text.removeprefix(SQLITE)
            if not Path(path).is_absolute() or Path(path).name in {"", ".."}:
                raise ValueError(f"names a SQLite file by a path that is not absolute: {ALLOWED} (four slashes in all)")
            if "?" in path:
                raise ValueError(f"names a SQLite file with a '?', behind which its driver reads options: {ALLOWED}")
            return cls(text)
        try:
            parts = urlsplit(text)
            _ = parts.port
        except ValueError:
            raise ValueError(f"is no URI: {ALLOWED}") from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"is no place of a registry: {ALLOWED}")
        return cls(text.rstrip("/"))

    @classmethod
    def of_file(cls, path: Path) -> "Location":
        return cls(SQLITE + str(path.resolve()))

    @property
    def is_there(self) -> bool:
        """Whether there is such a file; False for a path that can be none."""
        return self.file is not None and os.path.exists(self.file)  # noqa: PTH110  (Path.exists raises for a name too long)

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for a server."""
        return Path(self.uri.removeprefix(SQLITE)) if self.uri.startswith(SQLITE) else None

    def __str__(self) -> str:
        parts = urlsplit(self.uri)
        return self.uri if self.file else urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"
