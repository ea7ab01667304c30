"""Rules between the keys of a stack file; each yields faults with the key to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.core.faults import Fault
from components.errors import ManifestError, PlatformError
from components.inference.plan import plan_versions
from components.traffic.istio_manifest import external_host
from serving.model_config import model_names
from stacks.apps import apps_users
from stacks.models import manifest_of, parts_of, pool_use, repository_use, served_versions
from stacks.rules_batch import batch_faults
from stacks.rules_front import front_faults
from stacks.rules_names import name_faults
from stacks.rules_serving import model_faults
from stacks.rules_versions import compatibility_faults
from stacks.stores import store_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stacks.config import ModelSpec, StackConfig


def stack_faults(config: StackConfig, stack: str) -> Iterator[Fault]:
    """Every fault of a configuration whose values are each valid."""
    yield from _environment_faults(config, stack)
    yield from _host_faults(config)
    yield from name_faults(config)
    yield from batch_faults(config)
    yield from store_faults(config)
    for name, model in config.models.items():
        yield from _timeout_faults(name, model)
        yield from front_faults(name, model)
        yield from _in_flight_faults(config, name, model)
        version_faults = list(_version_faults(name, model))
        yield from version_faults or (
            *compatibility_faults(config, name, model),
            *(list(model_faults(name, model, config.images.variant)) or _server_faults(config, name, model)),
        )


def _environment_faults(config: StackConfig, stack: str) -> Iterator[Fault]:
    environment = config.environment.value
    if stack != environment and not stack.startswith(f"{environment}-"):
        yield Fault(("environment",), f"the stack is named {stack!r}", f"name the stack {environment} or {environment}-<suffix>, or change the key")
    if environment == "local":
        return
    if config.registry is not None and config.registry.uri is None:
        yield Fault(("registry", "uri"), f"required in {environment}: only the local stack has a registry of its own", "set it, or remove registry")
    if config.images.triton is None:
        way_out = (
            "build serving/Containerfile, push it to your registry, then: pulumi config set --path images.triton <registry>/<name>@sha256:<digest>"
        )
        yield Fault(("images", "triton"), f"required in {environment}: its cluster cannot pull an image of this machine", way_out)
    if config.images.apps is None and (users := [".".join(keys) for keys in apps_users(config)]):
        way_out = (
            "push the image `apps` to your registry (python -m tools.images build apps), then: "
            "pulumi config set --path images.apps <registry>/<name>@sha256:<digest>"
        )
        yield Fault(("images", "apps"), f"required in {environment} by {', '.join(users)}", way_out)
    if config.cluster.simulated_gpus is not None:
        way_out = "remove it; real nodes report their own GPUs"
        yield Fault(("cluster", "simulatedGpus"), f"GPUs are simulated in the environment local only, this is {environment}", way_out)


def _host_faults(config: StackConfig) -> Iterator[Fault]:
    """Every model has a host of its own under the gateway's domain."""
    owners: dict[str, str] = {}
    for name, model in config.models.items():
        key = ("models", name, "routing", "host")
        try:
            host = external_host(model.identity(name, config.cluster.namespace), model.routing, config.gateway.domain)
        except PlatformError as error:
            yield Fault(key, error.message, error.hint)
            continue
        if (owner := owners.setdefault(host, name)) != name:
            yield Fault(key, f"host {host} belongs to model {owner!r} already", "give one of them another routing.host")


def _timeout_faults(name: str, model: ModelSpec) -> Iterator[Fault]:
    """A route that gives up before the server does cuts requests the server would have answered."""
    route, server = model.routing.timeout_seconds, model.server.max_request_seconds
    if route < server:
        reason = f"is below server.maxRequestSeconds {server}: requests the server still answers would be cut"
        yield Fault(("models", name, "routing", "timeoutSeconds"), reason, f"raise it to at least {server}, or lower server.maxRequestSeconds")


def _in_flight_faults(config: StackConfig, name: str, model: ModelSpec) -> Iterator[Fault]:
    """Every gateway pod has a share of the requests that a version may have under way."""
    try:
        model.routing.requests.connections(config.gateway.replicas)
    except PlatformError as error:
        yield Fault(("models", name, "routing", "maxInFlight"), error.message, error.hint)


def _version_faults(name: str, model: ModelSpec) -> Iterator[Fault]:
    """The model and its versions are published, and the canary is another version than the stable one."""
    at: tuple[str, ...] = ("models", name)
    triton_name = model.triton_name or name
    if triton_name not in model_names():
        key = at if model.triton_name is None else (*at, "tritonName")
        yield Fault(key, f"the model repository has no model {triton_name!r}", f"models there are: {', '.join(model_names())} (serving/models/)")
        return
    places = [((*at, "version"), model.version)] + ([] if model.canary is None else [((*at, "canary", "version"), model.canary.version)])
    for key, version in places:
        try:
            parts_of(manifest_of(name, model), version)
        except PlatformError as error:
            yield Fault(key, error.message, error.hint)
    if model.canary is not None and model.canary.version == model.version:
        yield Fault((*at, "canary", "version"), "is the stable version too", "name another version, or remove canary")


def _server_faults(config: StackConfig, name: str, model: ModelSpec) -> Iterator[Fault]:
    """Server, batching, memory and node pool fit together: the components' own decisions, taken early."""
    try:
        plan_versions(
            model.identity(name, config.cluster.namespace),
            model.server,
            pool_use(config, name),
            served_versions(name, model, config.images.variant),
            repository_use(config, name),
            model.routing.requests,
        )
    except PlatformError as error:
        keys = error.keys if isinstance(error, ManifestError) else ()
        yield Fault(("models", name, *keys), error.message, error.hint)
