"""The port at which Prometheus reads a process: bounded, because whoever reaches it may open connections and send nothing."""

import socket
import threading
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

# Longest silence of a peer. Prometheus sends its request at once.
SILENCE_SECONDS = 5
MAX_CONNECTIONS = 16


class _Handler(WSGIRequestHandler):
    timeout = SILENCE_SECONDS

    def log_message(self, *_: Any) -> None:
        """Scrapes are no events."""


class MetricsServer(ThreadingMixIn, WSGIServer):
    """A thread a connection, MAX_CONNECTIONS of them: one more, and the connection that is open longest is closed, so that a scrape always finds room."""

    daemon_threads = True
    address_family = socket.AF_INET

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._open: dict[socket.socket, None] = {}
        self._changes = threading.Lock()
        super().__init__(*arguments, **settings)

    @property
    def connections(self) -> int:
        return len(self._open)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changes:
            while len(self._open) >= MAX_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                # Its thread reads the end of it, and ends.
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._changes:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A peer that is late, or has left, is no fault of ours."""


def serve_metrics(port: int, registry: CollectorRegistry, address: str = "") -> MetricsServer:
    """Serve `registry` in threads of their own until `shutdown`. OSError for a port that is taken."""
    server = make_server(address, port, make_wsgi_app(registry), MetricsServer, handler_class=_Handler)
    threading.Thread(target=server.serve_forever, daemon=True, name="metrics").start()
    return server
