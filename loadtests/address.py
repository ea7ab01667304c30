"""The guard of the traffic engine: load goes to the caller's own machines, never to a stranger."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from loadtests.errors import TargetError

PORT_MAX = 65_535


@dataclass(frozen=True)
class OwnAddress:
    """Where requests may be sent; made by `own_address` only after its checks."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def own_address(host: str, port: int, *, own: Iterable[str] = ()) -> OwnAddress:
    """Return the address if it is loopback, or a private one listed in `own`; else raise TargetError.

    `own` names the addresses that the caller made itself (a local node's, a pod's). Names are refused: what a name means is decided elsewhere.
    """
    hint = "pass a loopback address, or the private IP address of your own node and list it in `own`"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise TargetError(f"target {host!r} is no IP address", hint=hint) from None
    if not 0 < port <= PORT_MAX:
        raise TargetError(f"target {host}: port {port} is outside 1 to {PORT_MAX}", hint=hint)
    if not address.is_loopback:
        if not address.is_private or address.is_unspecified:
            raise TargetError(f"target {host}:{port} is a public address", hint=hint)
        if address not in {ipaddress.ip_address(entry) for entry in own}:
            raise TargetError(f"target {host}:{port} is private but not declared as your own", hint=hint)
    return OwnAddress(str(address), port)
