"""How large requests may be and how many are under way: what the gateway enforces and the memory of a server is reckoned with."""

from dataclasses import dataclass

from components.errors import ManifestError

MIB = 1024 * 1024
# Names, shapes and parameters of a request beside its tensors, and the four bytes before each string of a batch.
DESCRIPTION_BYTES = 64 * 1024
# HTTP and gRPC are upstream clusters of their own to the gateway, each with its own count of connections.
PROTOCOLS = 2
# While the gateway is updated there is one pod more (maxSurge 1).
GATEWAY_SURGE = 1


@dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """`max_request_mib`: largest request; `max_in_flight`: requests that one version has under way at a time, wherever its pods are."""

    max_request_mib: int = 2
    max_in_flight: int = 128

    @property
    def max_request_bytes(self) -> int:
        """Length of the largest request, over HTTP or as a message of gRPC: `max_request_mib` of tensors and what describes them."""
        return self.max_request_mib * MIB + DESCRIPTION_BYTES

    def connections(self, gateway_replicas: int) -> int:
        """What one gateway pod may have open to a version per protocol, one request each, so that all of them together keep `max_in_flight`.

        ManifestError when that is none.
        """
        shares = PROTOCOLS * (gateway_replicas + GATEWAY_SURGE)
        if self.max_in_flight < shares:
            raise ManifestError(
                f"routing.maxInFlight {self.max_in_flight} leaves a gateway pod no request: {PROTOCOLS} protocols x "
                f"({gateway_replicas} gateway.replicas + {GATEWAY_SURGE} while they are updated) = {shares}",
                hint=f"set routing.maxInFlight to at least {shares}, or lower gateway.replicas",
            )
        return self.max_in_flight // shares


# Of a stack that says nothing.
DEFAULT_LIMITS = RequestLimits()
