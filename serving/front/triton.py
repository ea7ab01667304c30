"""The model over Triton's v2 protocol: gRPC on connections that are kept open, never a second try."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritonclient.grpc import InferInput
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

from serving.contract import VERSION_HEADER
from serving.front.faults import of_grpc
from serving.front.settings import NO_FILES_HINT, ModelTargetSpec, Priority
from serving.tensors import file_input, values_of_items

MICROSECONDS = 1_000_000
# When to come back to a model that takes no requests: about the time in which a pod is replaced by one that is ready.
UNAVAILABLE_RETRY_SECONDS = 5
CHANNEL_OPTIONS: tuple[tuple[str, Any], ...] = (
    # An inference is not repeated; without this gRPC repeats by itself what it believes was never seen.
    ("grpc.enable_retries", 0),
    # The front's own limit is the limit.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Else channels to one address share one connection.
    ("grpc.use_local_subchannel_pool", 1),
    # A gateway that comes back is found again within a second, not within the two minutes to which the pauses grow.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Neither a proxy of the environment nor a lookup of TXT records stands between a pod and its gateway.
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
)


@dataclass(frozen=True)
class Call:
    """How a request is to be run; `seconds` is what is left of its time, `version` "" leaves the choice to the weights."""

    seconds: float
    version: str = ""
    priority: Priority = "realtime"
    request_id: str = ""


@dataclass(frozen=True)
class Answer:
    """The version that answered, and the outputs of each item as JSON."""

    version: str
    items: Sequence[Mapping[str, Any]]


class TritonModel:
    """One model behind one address; made inside the event loop that uses it, ended by `close`."""

    def __init__(self, target: ModelTargetSpec) -> None:
        self._target, self._input = target, file_input(target.signature.inputs, NO_FILES_HINT)
        authority = () if target.authority is None else (("grpc.default_authority", target.authority),)
        options = [*CHANNEL_OPTIONS, *authority]
        self._clients = [InferenceServerClient(target.address, channel_args=options) for _ in range(target.connections)]
        self._turns = itertools.cycle(self._clients)

    @property
    def largest_batch(self) -> int:
        """Items that one request may hold."""
        return max(1, self._target.max_batch_size) if self._input.joins else 1

    async def infer(self, files: Sequence[bytes], call: Call) -> Answer:
        """Run the model once on all `files`; RequestFault for whatever else comes back than their outputs.

        The deadline goes along twice: with the RPC, whose end Triton takes for a cancelled request, and as Triton's own time limit of the request.
        The latter counts where a queue policy has `allowTimeoutOverride`: then the queue drops what nobody waits for any more by itself.
        """
        tensor = self._input.tensor(files)
        content = InferInput(self._input.name, list(tensor.shape), self._input.datatype)
        content.set_data_from_numpy(tensor)
        try:
            result = await next(self._turns).infer(
                self._target.name,
                [content],
                model_version=call.version,
                request_id=call.request_id,
                priority=self._target.priorities.get(call.priority, 0),
                timeout=max(1, int(call.seconds * MICROSECONDS)),
                client_timeout=call.seconds,
                headers={VERSION_HEADER: call.version} if call.version else None,
            )
        except InferenceServerException as error:
            raise of_grpc(_status(error), error.message() or "", UNAVAILABLE_RETRY_SECONDS) from None
        response = result.get_response()
        outputs = {output.name: result.as_numpy(output.name) for output in response.outputs}
        try:
            items = values_of_items(outputs, len(files))
        except ValueError as error:
            raise of_grpc("INTERNAL", str(error), UNAVAILABLE_RETRY_SECONDS) from error
        return Answer(response.model_version, items)

    async def ready(self, seconds: float) -> bool:
        """Whether the model answers that it is ready, asked on the way that requests take."""
        try:
            return bool(await next(self._turns).is_model_ready(self._target.name, client_timeout=seconds))
        except InferenceServerException:
            return False

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


def _status(error: InferenceServerException) -> str:
    """The name of the gRPC status; an answer that the client itself cannot read has none."""
    return (error.status() or "").removeprefix("StatusCode.")
