"""One layer of an OCI artefact, over the distribution API: the manifest by digest, the layer by its title; model.yaml pins its content.

Anonymous, or with OCI_USERNAME and OCI_PASSWORD; a registry on the loopback address is spoken to without TLS.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from serving.repository.errors import AbsentError, RepositoryError, TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

TITLE = "org.opencontainers.image.title"
MANIFEST_TYPES = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.artifact.manifest.v1+json"
LOOPBACK = re.compile(r"^(localhost|127\.\d+\.\d+\.\d+)(:\d+)?$")
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
TIMEOUT_SECONDS = 30
UNAUTHORISED, NOT_FOUND, TOO_MANY, SERVER_ERROR = 401, 404, 429, 500


@contextmanager
def open_layer(reference: str, title: str) -> Iterator[IO[bytes]]:
    """The bytes of the layer that carries `title`. Raises RepositoryError for what is not there or is not what its digest says."""
    import httpx  # noqa: PLC0415  only sources of this kind need it

    registry, _, rest = reference.partition("/")
    name, _, digest = rest.partition("@")
    base = f"{'http' if LOOPBACK.match(registry) else 'https'}://{registry}/v2/{name}"
    try:
        with httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=True) as client:
            manifest = _get(client, f"{base}/manifests/{digest}", {"Accept": MANIFEST_TYPES}, reference)
            if (found := f"sha256:{hashlib.sha256(manifest.content).hexdigest()}") != digest:
                raise RepositoryError(f"{reference}: the registry's manifest has digest {found}", hint="the registry or a proxy alters content")
            layer = _layer(json.loads(manifest.content), title, reference)
            with _opened(client, f"{base}/blobs/{layer}", manifest.request.headers.get("Authorization"), reference) as response:
                yield io.BufferedReader(_Body(response))
    except httpx.HTTPError as error:
        raise TransientError(
            f"{reference}: {error or type(error).__name__}", hint="the registry cannot be reached; check its name and the network"
        ) from error


class _Body(io.RawIOBase):
    """A response as a stream to read from."""

    def __init__(self, response: httpx.Response) -> None:
        self._chunks = response.iter_bytes()
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _layer(manifest: Any, title: str, reference: str) -> str:
    layers: list[dict[str, Any]] = manifest.get("layers", []) if isinstance(manifest, dict) else []
    by_title = {layer.get("annotations", {}).get(TITLE): layer["digest"] for layer in layers}
    if title not in by_title:
        known = ", ".join(sorted(filter(None, by_title))) or "none"
        raise AbsentError(f"{reference} has no layer titled {title!r}; titles there are: {known}", hint="correct `title` in model.yaml")
    return str(by_title[title])


def _get(client: httpx.Client, url: str, headers: Mapping[str, str], reference: str) -> httpx.Response:
    response = client.get(url, headers=headers)
    if response.status_code == UNAUTHORISED:
        response = client.get(url, headers={**headers, "Authorization": _authorise(client, response, reference)})
    _check(response, reference)
    return response


@contextmanager
def _opened(client: httpx.Client, url: str, authorisation: str | None, reference: str) -> Iterator[httpx.Response]:
    with client.stream("GET", url, headers={} if authorisation is None else {"Authorization": authorisation}) as response:
        _check(response, reference)
        yield response


def _check(response: httpx.Response, reference: str) -> None:
    status = response.status_code
    if status == NOT_FOUND:
        raise AbsentError(f"{reference}: the registry answers 404", hint="correct `reference` in model.yaml")
    if status == TOO_MANY or status >= SERVER_ERROR:
        raise TransientError(f"{reference}: the registry answers {status}", hint="try again later")
    if response.is_error:
        raise RepositoryError(f"{reference}: the registry answers {status}", hint="set OCI_USERNAME and OCI_PASSWORD to an account that may pull")


def _authorise(client: httpx.Client, response: httpx.Response, reference: str) -> str:
    """The Authorization header that a registry asks for (distribution specification, token authentication)."""
    user, password = os.environ.get("OCI_USERNAME"), os.environ.get("OCI_PASSWORD", "")
    scheme, _, rest = response.headers.get("WWW-Authenticate", "").partition(" ")
    parameters = dict(CHALLENGE.findall(rest))
    account = (user, password) if user else None
    if scheme.lower() == "basic" and account:
        return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    if scheme.lower() != "bearer" or "realm" not in parameters:
        raise RepositoryError(f"{reference}: the registry asks for credentials", hint="set OCI_USERNAME and OCI_PASSWORD")
    query = {key: parameters[key] for key in ("service", "scope") if key in parameters}
    answer = client.get(parameters["realm"], params=query, auth=account)
    _check(answer, reference)
    content = answer.json()
    return f"Bearer {content.get('token') or content.get('access_token')}"
