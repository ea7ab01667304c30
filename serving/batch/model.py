"""The model as the client sees it: what it takes and gives, and one request for a batch of items, over v2 gRPC."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tritonclient.grpc.aio import InferenceServerClient, InferInput, InferRequestedOutput, InferResult
from tritonclient.utils import InferenceServerException

from components.errors import ManifestError
from serving.batch.errors import BatchError, OutageError
from serving.batch.storage import NO_FILES_HINT
from serving.contract import VERSION_HEADER
from serving.grpc_status import is_transient
from serving.tensors import FileInput, file_input, values_of_items

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

    @property
    def headers(self) -> dict[str, str] | None:
        """A gateway reads the version here alone: without it, the weights send a share of the requests to another, which does not have this one."""
        return {VERSION_HEADER: self.version} if self.version else None


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

    @property
    def transient(self) -> bool:
        return is_transient(self.code)


@dataclass(frozen=True, kw_only=True)
class Model:
    """Made by `connected_model`; `max_batch` items at most go into one request, which carries `priority` (0: the model's default)."""

    client: InferenceServerClient
    wanted: Wanted
    input: FileInput
    outputs: tuple[str, ...]
    max_batch: int
    priority: int

    async def ask(self, contents: Sequence[bytes]) -> Answer:
        """Send the contents as one request. Raises RefusedError for anything but an answer with a row for each."""
        tensor = self.input.tensor(contents)
        content = InferInput(self.input.name, list(tensor.shape), self.input.datatype)
        content.set_data_from_numpy(tensor)
        try:
            result = await self.client.infer(
                self.wanted.model,
                [content],
                model_version=self.wanted.version,
                outputs=[InferRequestedOutput(name) for name in self.outputs],
                priority=self.priority,
                client_timeout=self.wanted.timeout_seconds,
                headers=self.wanted.headers,
            )
        except InferenceServerException as error:
            raise _refusal(error) from error
        return self._answer(result, len(contents))

    def _answer(self, result: InferResult, count: int) -> Answer:
        try:
            rows = self._rows(result, count)
        except ValueError as error:
            raise RefusedError("BAD_ANSWER", str(error)) from error
        return Answer(result.get_response().model_version, rows)

    def _rows(self, result: InferResult, count: int) -> list[dict[str, Any]]:
        """The outputs of each item; ValueError when one is missing or, as of a Python backend whose numpy is broken, empty."""
        tensors = {name: result.as_numpy(name) for name in self.outputs}
        if missing := [name for name, tensor in tensors.items() if tensor is None]:
            raise ValueError(f"output {', '.join(missing)} is missing in the answer to {count} items")
        return values_of_items(tensors, count, joined=self.input.joins)

    async def is_ready(self) -> bool:
        try:
            ready = await self.client.is_model_ready(
                self.wanted.model, self.wanted.version, client_timeout=CONTROL_SECONDS, headers=self.wanted.headers
            )
        except InferenceServerException:
            return False
        return bool(ready)


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
        metadata = await client.get_model_metadata(wanted.model, wanted.version, client_timeout=CONTROL_SECONDS, headers=wanted.headers)
    except InferenceServerException as error:
        refusal = _refusal(error)
        message = f"{address} does not describe model {wanted.model!r}: {refusal.code}{_reason(refusal)}"
        if refusal.transient:
            hint = "once the server is ready and the gateway has its route, run the same command again; --authority names the route"
            raise OutageError(message, hint=hint) from error
        raise BatchError(message, hint="correct --address, --authority, --model or --version") from error
    try:
        taken = file_input([_Described(tensor.name, tensor.datatype, tuple(tensor.shape)) for tensor in metadata.inputs], NO_FILES_HINT)
    except ManifestError as error:
        raise BatchError(f"model {wanted.model!r}: {error.message}", hint=error.hint) from error
    names = tuple(tensor.name for tensor in metadata.outputs)
    if unknown := [name for name in wanted.outputs if name not in names]:
        raise BatchError(f"model {wanted.model!r} has no output {', '.join(unknown)}", hint=f"outputs there are: {', '.join(names)}")
    max_batch, priority = await _limits(client, wanted, batched=taken.joins)
    return Model(client=client, wanted=wanted, input=taken, outputs=wanted.outputs or names, max_batch=max_batch, priority=priority)


@dataclass(frozen=True)
class _Described:
    name: str
    datatype: str
    dims: tuple[int, ...]


async def _limits(client: InferenceServerClient, wanted: Wanted, *, batched: bool) -> tuple[int, int]:
    """Largest batch and priority: as wanted, where the model's config allows it; else the model's own, and its lowest priority level."""
    if wanted.max_batch is not None and wanted.priority is not None:
        return (wanted.max_batch if batched else 1), wanted.priority
    config = await _config(client, wanted)
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


async def _config(client: InferenceServerClient, wanted: Wanted) -> Any:
    try:
        return (await client.get_model_config(wanted.model, wanted.version, client_timeout=CONTROL_SECONDS, headers=wanted.headers)).config
    except InferenceServerException as error:
        refusal = _refusal(error)
        message = f"the config of model {wanted.model!r} cannot be read: {refusal.code}"
        # The route is there, it has just described the model: a gateway that does not know this request hides it.
        if refusal.transient and refusal.code != "UNIMPLEMENTED":
            raise OutageError(message, hint="once the server is ready, run the same command again") from error
        raise BatchError(message, hint="a gateway may not let it through: give both --max-batch and --priority") from error


def _reason(refusal: RefusedError) -> str:
    """What was said with a status; a gateway says nothing with its UNIMPLEMENTED, which is its 404."""
    said = refusal.message or ("no route leads from this host to a model" if refusal.code == "UNIMPLEMENTED" else "no reason was given")
    return f", {said}"


def _refusal(error: InferenceServerException) -> RefusedError:
    code = (error.status() or "UNKNOWN").removeprefix("StatusCode.")
    return RefusedError(code, (error.message() or "").strip())
