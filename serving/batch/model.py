"""The model as the client sees it: what it takes and gives, and one request for a batch of items, over v2 gRPC."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from tritonclient.grpc.aio import InferenceServerClient, InferInput, InferRequestedOutput, InferResult
from tritonclient.utils import InferenceServerException

from serving.batch.errors import BatchError, OutageError
from serving.batch.records import plain

# Metadata and config are small; whoever needs longer for them serves nobody.
CONTROL_SECONDS = 10.0
GRPC_MAX_BYTES = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the caller asks for; None: as the model says."""

    model: str
    version: str = ""
    outputs: tuple[str, ...] = ()
    max_batch: int | None = None
    priority: int | None = None
    timeout_seconds: float = 60.0


@dataclass(frozen=True)
class Answer:
    """The model's answer to a batch: version, and for each item its outputs by tensor name."""

    version: str
    rows: list[dict[str, Any]]


class RefusedError(Exception):
    """A request without a usable answer; `code` as gRPC names it, or BAD_ANSWER."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, kw_only=True)
class Model:
    """Made by `connected_model`; `max_batch` items at most go into one request, which carries `priority` (0: the model's default)."""

    client: InferenceServerClient
    wanted: Wanted
    input_name: str
    input_axes: tuple[int, ...]
    outputs: tuple[str, ...]
    max_batch: int
    priority: int

    async def ask(self, contents: Sequence[bytes]) -> Answer:
        """Send the contents as one request. Raises RefusedError for anything but an answer with a row for each."""
        tensor = InferInput(self.input_name, [len(contents), *self.input_axes], "BYTES")
        tensor.set_data_from_numpy(np.array([*contents, None], dtype=np.object_)[:-1].reshape(tensor.shape()))
        try:
            result = await self.client.infer(
                self.wanted.model,
                [tensor],
                model_version=self.wanted.version,
                outputs=[InferRequestedOutput(name) for name in self.outputs],
                priority=self.priority,
                client_timeout=self.wanted.timeout_seconds,
            )
        except InferenceServerException as error:
            raise _refusal(error) from error
        return self._answer(result, len(contents))

    def _answer(self, result: InferResult, count: int) -> Answer:
        columns = {}
        for name in self.outputs:
            array = result.as_numpy(name)
            # A Python backend whose numpy is broken answers OK with empty tensors.
            if array is None or array.shape[:1] != (count,):
                shape = "missing" if array is None else f"of shape {list(array.shape)}"
                raise RefusedError("BAD_ANSWER", f"output {name!r} is {shape} in the answer to {count} items")
            columns[name] = [plain(row.item() if row.size == 1 else row.tolist()) for row in array.reshape(count, -1)]
        rows = [{name: column[index] for name, column in columns.items()} for index in range(count)]
        return Answer(result.get_response().model_version, rows)

    async def is_ready(self) -> bool:
        try:
            return bool(await self.client.is_model_ready(self.wanted.model, self.wanted.version, client_timeout=CONTROL_SECONDS))
        except InferenceServerException:
            return False


@asynccontextmanager
async def connected_model(address: str, authority: str | None, wanted: Wanted, *, tls: bool = False) -> AsyncIterator[Model]:
    """The model behind `address`. OutageError when the server cannot be reached; BatchError for a model this client cannot ask."""
    options: list[tuple[str, str | int]] = [
        ("grpc.max_send_message_length", GRPC_MAX_BYTES),
        ("grpc.max_receive_message_length", GRPC_MAX_BYTES),
        # Retries are decided here, where they are counted and bounded.
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    if authority is not None:
        options.append(("grpc.default_authority", authority))
    async with InferenceServerClient(address, ssl=tls, channel_args=options) as client:
        yield await _describe(client, address, wanted)


async def _describe(client: InferenceServerClient, address: str, wanted: Wanted) -> Model:
    try:
        metadata = await client.get_model_metadata(wanted.model, wanted.version, client_timeout=CONTROL_SECONDS)
    except InferenceServerException as error:
        refusal = _refusal(error)
        message = f"{address} does not describe model {wanted.model!r}: {refusal.code} {refusal.message}"
        if refusal.code in TRANSIENT:
            raise OutageError(message, hint="once the server is ready, run the same command again") from error
        raise BatchError(message, hint="correct --address, --authority, --model or --version") from error
    if len(metadata.inputs) != 1 or metadata.inputs[0].datatype != "BYTES":
        inputs = ", ".join(f"{tensor.name} {tensor.datatype}" for tensor in metadata.inputs)
        raise BatchError(f"model {wanted.model!r} takes {inputs}", hint="use a model with one BYTES input: an item is one element of it")
    names = tuple(tensor.name for tensor in metadata.outputs)
    if unknown := [name for name in wanted.outputs if name not in names]:
        raise BatchError(f"model {wanted.model!r} has no output {', '.join(unknown)}", hint=f"outputs there are: {', '.join(names)}")
    tensor = metadata.inputs[0]
    if any(size not in {-1, 1} for size in tensor.shape):
        raise BatchError(f"input {tensor.name} has shape {list(tensor.shape)}", hint="use a model whose input takes one element for each item")
    max_batch, priority = await _limits(client, wanted, batched=tensor.shape[0] == -1)
    return Model(
        client=client,
        wanted=wanted,
        input_name=tensor.name,
        input_axes=(1,) * (len(tensor.shape) - 1),
        outputs=wanted.outputs or names,
        max_batch=max_batch,
        priority=priority,
    )


async def _limits(client: InferenceServerClient, wanted: Wanted, *, batched: bool) -> tuple[int, int]:
    """Largest batch and priority: as wanted, where the model's config allows it; else the model's own, and its lowest priority level."""
    if wanted.max_batch is not None and wanted.priority is not None:
        return (wanted.max_batch if batched else 1), wanted.priority
    try:
        config = (await client.get_model_config(wanted.model, wanted.version, client_timeout=CONTROL_SECONDS)).config
    except InferenceServerException as error:
        raise BatchError(
            f"the config of model {wanted.model!r} cannot be read: {_refusal(error).code}",
            hint="a gateway may not let it through: give both --max-batch and --priority",
        ) from error
    # A level over the highest counts as the default one (triton-inference-server/core, PriorityQueue): nothing would be lower then.
    levels = config.dynamic_batching.priority_levels
    limit = max(1, config.max_batch_size) if batched else 1
    if wanted.max_batch is not None and config.max_batch_size and wanted.max_batch > limit:
        raise BatchError(f"--max-batch {wanted.max_batch} is above the model's max_batch_size {limit}", hint="lower it, or leave it out")
    if wanted.priority is not None and wanted.priority > levels:
        raise BatchError(
            f"--priority {wanted.priority} is above the model's {levels} priority levels", hint="lower it, or leave it out for the lowest level"
        )
    return wanted.max_batch or limit, levels if wanted.priority is None else wanted.priority


# Codes that say nothing about the request: a server that starts, ends, queues or sheds load. gRPC maps HTTP 429, 502, 503 and 504 to UNAVAILABLE.
TRANSIENT = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "ABORTED", "CANCELLED"})


def _refusal(error: InferenceServerException) -> RefusedError:
    code = (error.status() or "UNKNOWN").removeprefix("StatusCode.")
    return RefusedError(code, (error.message() or "").strip())
