"""The metrics' port stays readable and small whoever connects to it."""

import socket
import threading
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Gauge

from serving import metrics_server
from serving.metrics_server import MAX_CONNECTIONS, serve_metrics


@pytest.fixture
def server():
    registry = CollectorRegistry()
    Gauge("answer", "Of all.", registry=registry).set(42)
    made = serve_metrics(0, registry, "127.0.0.1")
    yield made
    made.shutdown()
    made.server_close()


def scrape(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=30) as answer:
        return answer.read().decode()


def test_three_hundred_connections_that_say_nothing_keep_no_scrape_out_and_take_few_threads(server):
    before = threading.active_count()
    silent = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(300)]
    try:
        assert "answer 42.0" in scrape(server)
        assert server.connections <= MAX_CONNECTIONS
        # Threads of connections that were just closed may be on their way out.
        assert threading.active_count() - before < len(silent) // 2
    finally:
        for each in silent:
            each.close()


def test_a_peer_that_says_nothing_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(metrics_server._Handler, "timeout", 0.1)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as silent:
        assert silent.recv(1) == b""
