"""A container registry in this process: what the distribution specification says about pulling one artefact, and token authentication."""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from serving.repository.oci import TITLE


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Registry:
    """`serve` files as layers of one artefact; `lie` alters answers, `account` makes it ask for a token."""

    def __init__(self):
        self.content, self.requests, self.fault = {}, [], None
        self.account: tuple[str, str] | None = None
        self.address = ""

    def push(self, name, files):
        """The artefact's reference by digest."""
        layers = []
        for title, body in files.items():
            self.content[f"/v2/{name}/blobs/{digest(body)}"] = body
            layers.append({"digest": digest(body), "size": len(body), "mediaType": "application/octet-stream", "annotations": {TITLE: title}})
        manifest = json.dumps({"schemaVersion": 2, "layers": layers}).encode()
        self.content[f"/v2/{name}/manifests/{digest(manifest)}"] = manifest
        return f"{self.address}/{name}@{digest(manifest)}"

    def answer(self, path, authorisation):
        """Status, headers and body."""
        self.requests.append((path, authorisation))
        if path.startswith("/token"):
            expected = "Basic " + base64.b64encode(":".join(self.account or ()).encode()).decode()
            return (200, {}, b'{"token": "t0ken"}') if authorisation == expected else (401, {}, b"")
        if self.account and authorisation != "Bearer t0ken":
            challenge = f'Bearer realm="http://{self.address}/token",service="registry",scope="repository:models:pull"'
            return 401, {"WWW-Authenticate": challenge}, b""
        if self.fault:
            return self.fault, {}, b""
        return (200, {}, self.content[path]) if path in self.content else (404, {}, b"")


@contextmanager
def serving():
    """A registry on a free port of the loopback address."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = registry.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
