"""An engine that records: builds a program against Pulumi's mock monitor and keeps every registration, with parent, provider and options."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.runtime import mocks, rpc, set_mocks
from pulumi.runtime import test as pulumi_test
from pulumi.runtime.settings import reset_options

KUBERNETES_PREFIX = "kubernetes:"
PROVIDER_PREFIX = "pulumi:providers:"


@dataclass(frozen=True)
class Registered:
    """One resource as the engine would see it; `parent` and `dependencies` are URNs, `provider` is `<urn>::<id>` or empty."""

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    parent: str
    provider: str
    custom: bool
    dependencies: tuple[str, ...]
    create_timeout: str
    update_timeout: str
    ignore_changes: tuple[str, ...]

    @property
    def is_kubernetes(self) -> bool:
        """Whether it is an object of a cluster, and not a component or a provider."""
        return self.custom and self.type.startswith(KUBERNETES_PREFIX)

    @property
    def provider_urn(self) -> str:
        return self.provider.rpartition("::")[0]


@dataclass(frozen=True)
class Invoked:
    """One call of a provider function."""

    token: str
    args: Mapping[str, Any]
    provider: str


@dataclass
class Recording:
    """What a program did; `outputs` holds what components registered, by URN."""

    resources: list[Registered] = field(default_factory=list)
    invokes: list[Invoked] = field(default_factory=list)
    outputs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def of_type(self, suffix: str) -> list[Registered]:
        """Resources whose type token ends in `:<suffix>`, e.g. `Deployment`."""
        return [resource for resource in self.resources if resource.type.rpartition(":")[2] == suffix]

    def one(self, suffix: str, name: str | None = None) -> Registered:
        """The only resource of a type, or the one with this Kubernetes name."""
        found = [r for r in self.of_type(suffix) if name is None or r.inputs.get("metadata", {}).get("name") == name]
        assert len(found) == 1, f"{len(found)} resources of type {suffix} named {name}: {[r.urn for r in self.resources]}"
        return found[0]

    @property
    def kubernetes(self) -> list[Registered]:
        return [resource for resource in self.resources if resource.is_kubernetes]


class RecordingMocks(mocks.Mocks):
    """Answers of a provider that grants everything; `invoke_results` are answers by function token."""

    def __init__(self, recording: Recording, invoke_results: Mapping[str, dict[str, Any]]) -> None:
        self.recording = recording
        self.invoke_results = invoke_results

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        return (f"{args.name}-id" if args.custom else ""), dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        self.recording.invokes.append(Invoked(args.token, args.args, args.provider))
        return self.invoke_results.get(args.token, {}), []


@contextmanager
def thread_loop() -> Iterator[None]:
    """An event loop for one call in a worker thread; the mock monitor makes one there itself, and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


class RecordingMonitor(mocks.MockMonitor):
    """Pulumi's mock monitor shows its mocks neither parents nor options, so they are read from the request itself."""

    def __init__(self, engine: RecordingMocks) -> None:
        super().__init__(engine)
        self.recording = engine.recording

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  name of the gRPC method
        with thread_loop():
            response: Any = super().RegisterResource(request)
        if request.type != "pulumi:pulumi:Stack":
            self.recording.resources.append(
                Registered(
                    urn=response.urn,
                    type=request.type,
                    name=request.name,
                    inputs=rpc.deserialize_properties(request.object),
                    parent=request.parent,
                    provider=request.provider,
                    custom=request.custom,
                    dependencies=tuple(request.dependencies),
                    create_timeout=request.customTimeouts.create,
                    update_timeout=request.customTimeouts.update,
                    ignore_changes=tuple(request.ignoreChanges),
                )
            )
        return response

    def ReadResource(self, request: Any) -> Any:  # noqa: N802  name of the gRPC method
        with thread_loop():
            return super().ReadResource(request)

    def Invoke(self, request: Any) -> Any:  # noqa: N802  name of the gRPC method
        with thread_loop():
            return super().Invoke(request)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802  name of the gRPC method
        self.recording.outputs[request.urn] = rpc.deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)


class _WarningCollector:
    """The part of a logger that the mock engine uses."""

    def __init__(self, warnings: list[str]) -> None:
        self.warning = warnings.append

    def debug(self, message: str) -> None:
        """Say nothing."""

    info = error = debug


def run(
    build: Callable[[], Any],
    *,
    config: Mapping[str, str] | None = None,
    stack: str = "test",
    preview: bool = False,
    invoke_results: Mapping[str, dict[str, Any]] | None = None,
) -> Recording:
    """Build a program inside the runtime, on an event loop of its own, wait until all of it is registered, and return the recording.

    What `build` raises is raised here. `config` is Pulumi config by full key. Assert on the recording, after this returned.
    """
    recording = Recording()
    with fresh_runtime():
        pulumi.runtime.set_all_config(dict(config or {}))
        engine = RecordingMocks(recording, invoke_results or {})
        set_mocks(
            engine,
            project="inference-platform",
            stack=stack,
            preview=preview,
            monitor=RecordingMonitor(engine),
            logger=_WarningCollector(recording.warnings),  # type: ignore[arg-type]
        )

        def program() -> None:
            # Without its result: the runtime would wait for an Output, and an error would surface in a second place.
            build()

        pulumi_test(program)()
    return recording


@contextmanager
def fresh_runtime() -> Iterator[None]:
    """An event loop and Pulumi's global settings, neither shared with another test (pulumi/pulumi#24338)."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    reset_options(project="inference-platform", stack="test")
    try:
        yield
    finally:
        reset_options(project="inference-platform", stack="test")
        pulumi.runtime.set_all_config({})
        asyncio.set_event_loop(None)
        loop.close()
