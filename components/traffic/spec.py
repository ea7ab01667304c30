"""What a person says about traffic: canary weight, route, gateway."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from components.core.requests import RequestLimits
from components.core.spec import Spec

# Conditions under which the request provably never reached a server, so that a second try cannot repeat an inference.
NOT_SENT = frozenset({"connect-failure", "refused-stream", "reset-before-request"})

RetryCondition = Literal[
    "connect-failure",
    "refused-stream",
    "reset-before-request",
    "reset",
    "gateway-error",
    "5xx",
    "retriable-4xx",
    "cancelled",
    "deadline-exceeded",
    "internal",
    "resource-exhausted",
    "unavailable",
    "429",
    "500",
    "502",
    "503",
    "504",
]

DnsName = Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$")]


class CanarySpec(Spec):
    """A second version of a model and its share of the traffic; the stable version gets the rest."""

    version: Annotated[int, Field(ge=1, description="Version under trial, as published in serving/models/<name>/model.yaml.")]
    weight: Annotated[int, Field(ge=0, le=100, description="Percent of the requests, a whole number; the stable version gets 100 minus this.")]


class RetriesSpec(Spec):
    """When the gateway tries again, on another pod. The default repeats only requests that no server has seen."""

    attempts: Annotated[int, Field(ge=0, le=10, description="Further tries after the first; 0: none.")] = 2
    per_try_timeout_seconds: Annotated[
        float | None, Field(ge=0.001, le=3600, description="Time limit of each try; absent: a try may take the whole timeoutSeconds.")
    ] = None
    on: Annotated[
        tuple[RetryCondition, ...],
        Field(min_length=1, strict=False, description="Conditions of a retry; those where a server may have seen the request need idempotent: true."),
    ] = ("connect-failure", "refused-stream")


class RoutingSpec(Spec):
    """The route to a model."""

    timeout_seconds: Annotated[float, Field(ge=0.001, le=3600, description="Time limit of a request with all its tries, at the gateway.")] = 60
    connect_timeout_ms: Annotated[int, Field(ge=1, le=1000, description="Time limit of one TCP connection to a pod, in milliseconds.")] = 250
    max_request_mib: Annotated[
        int, Field(ge=1, le=1024, description="Largest request, in MiB; over gRPC the largest message. What is larger, the gateway refuses.")
    ] = RequestLimits.max_request_mib
    max_in_flight: Annotated[
        int, Field(ge=1, le=100_000, description="Requests that one version has under way at a time; further ones wait at the gateway.")
    ] = RequestLimits.max_in_flight
    retries: RetriesSpec = RetriesSpec()
    idempotent: Annotated[bool, Field(description="Whether running one request twice does no harm; allows every retry condition.")] = False
    host: Annotated[DnsName | None, Field(description="External host, under gateway.domain; absent: <model>.<gateway.domain>.")] = None

    @property
    def requests(self) -> RequestLimits:
        return RequestLimits(max_request_mib=self.max_request_mib, max_in_flight=self.max_in_flight)

    @model_validator(mode="after")
    def _retries_repeat_no_inference(self) -> Self:
        seen_by_a_server = [condition for condition in self.retries.on if condition not in NOT_SENT]
        if seen_by_a_server and not self.idempotent:
            raise ValueError(
                f"retries.on {', '.join(seen_by_a_server)}: the server may have run the request already, so a retry could repeat an inference; "
                f"drop it, or declare the model idempotent: true"
            )
        return self

    @model_validator(mode="after")
    def _tries_fit_into_the_timeout(self) -> Self:
        per_try = self.retries.per_try_timeout_seconds
        if per_try is None:
            return self
        needed = per_try * max(self.retries.attempts, 1)
        if needed > self.timeout_seconds:
            raise ValueError(
                f"retries.attempts {self.retries.attempts} x retries.perTryTimeoutSeconds {per_try:g} = {needed:g} s exceeds "
                f"timeoutSeconds {self.timeout_seconds:g}; the last try could never end: lower one or raise the timeout"
            )
        return self


class NodePortService(Spec):
    """The gateway on a fixed port of every node; for clusters without load balancers."""

    type: Literal["NodePort"]
    node_port: Annotated[int, Field(ge=30000, le=32767, description="Port on every node, from Kubernetes' default range.")]


class LoadBalancerService(Spec):
    """The gateway behind the cloud's load balancer."""

    type: Literal["LoadBalancer"]
    annotations: Annotated[dict[str, str], Field(description="Annotations the cloud's load balancer controller reads.")] = Field(default_factory=dict)


class ClusterIpService(Spec):
    """The gateway inside the cluster only."""

    type: Literal["ClusterIP"]


class GatewaySpec(Spec):
    """The ingress gateway: one for all models of the stack."""

    domain: Annotated[DnsName, Field(description="Models are served at <model>.<domain>.")]
    service: Annotated[NodePortService | LoadBalancerService | ClusterIpService, Field(discriminator="type")]
    replicas: Annotated[int, Field(ge=1, le=100, description="Gateway pods.")] = 1
