"""Request sizes: what the gateway refuses so that no server ends for want of memory.

Envoy's own `buffer` filter would hold every request until it is whole: memory of the gateway instead of the server's, and no streams, since nothing
is passed on before the caller has said its last word. A length that is known beforehand needs no buffer: HTTP says it in Content-Length, which
Envoy holds the body to, and gRPC in the five bytes before each message.
"""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from components import labels
from components.core.requests import RequestLimits

LUA_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"
LUA_ROUTE_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.LuaPerRoute"
FILTER = "inference.request-limits"
SCRIPT = Path(__file__).with_name("request_limits.lua")


def at_most(limit: int) -> str:
    """A regular expression of the whole numbers from 0 to `limit`, as they stand in a header."""
    digits = str(limit)
    alternatives = [f"[0-9]{{1,{len(digits) - 1}}}"] if len(digits) > 1 else []
    for position, digit in enumerate(digits):
        low = 1 if position == 0 and len(digits) > 1 else 0
        if int(digit) > low:
            rest = len(digits) - position - 1
            alternatives.append(f"{digits[:position]}[{low}-{int(digit) - 1}]" + (f"[0-9]{{{rest}}}" if rest else ""))
    return "|".join([*alternatives, digits])


def too_large(limits: RequestLimits) -> tuple[list[dict[str, Any]], HTTPStatus, str]:
    """Match, status and way out of HTTP requests that are longer than the limit, or POSTs that do not say how long they are."""
    known = {"content-length": {"regex": at_most(limits.max_request_bytes)}}
    here = {"uri": {"prefix": "/v2/"}, "withoutHeaders": known}
    match = [{"method": {"exact": "POST"}, **here}, {"headers": {"content-length": {"regex": ".+"}}, **here}]
    way_out = f"a request is limited to {limits.max_request_mib} MiB, and says its Content-Length"
    return match, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, way_out


def build_request_limits(name: str, namespace: str, selector: Mapping[str, str], port: int, limits: Mapping[str, RequestLimits]) -> dict[str, Any]:
    """EnvoyFilter of the gateway: gRPC messages are limited per host. `limits` are by external host, `port` is that of the gateway's server."""
    return {
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": name, "namespace": namespace, "labels": labels.common("gateway")},
        "spec": {
            "workloadSelector": {"labels": dict(selector)},
            "configPatches": [_insert_filter(), *_host_limits(port, limits)],
        },
    }


def _insert_filter() -> dict[str, Any]:
    manager = {"name": "envoy.filters.network.http_connection_manager", "subFilter": {"name": "envoy.filters.http.router"}}
    script = {"@type": LUA_TYPE, "default_source_code": {"inline_string": SCRIPT.read_text(encoding="utf-8")}}
    return {
        "applyTo": "HTTP_FILTER",
        "match": {"context": "GATEWAY", "listener": {"filterChain": {"filter": manager}}},
        "patch": {"operation": "INSERT_BEFORE", "value": {"name": FILTER, "typed_config": script}},
    }


def _host_limits(port: int, limits: Mapping[str, RequestLimits]) -> Iterator[dict[str, Any]]:
    """The limit is with the host's routes and not in the script: a new model then changes routes alone, and no listener drains its connections."""
    for host, limit in sorted(limits.items()):
        context = {"@type": LUA_ROUTE_TYPE, "filter_context": {"maxBytes": limit.max_request_bytes}}
        yield {
            "applyTo": "VIRTUAL_HOST",
            "match": {"context": "GATEWAY", "routeConfiguration": {"vhost": {"name": f"{host}:{port}"}}},
            "patch": {"operation": "MERGE", "value": {"typed_per_filter_config": {FILTER: context}}},
        }
