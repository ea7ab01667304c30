"""The registry of a stack: which one, and what it says about the versions that the stack serves."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from components.core.spec import Spec
from components.errors import ConfigError
from serving.registry.location import REGISTRY_VARIABLE, Location
from serving.registry.lookup import look_up
from serving.registry.view import RegistryView

if TYPE_CHECKING:
    from stacks.config import StackConfig

LookUp = Callable[[Location, list[str], float], RegistryView]


def _check_uri(text: str) -> str:
    Location.parse(text)
    return text


class RegistrySpec(Spec):
    """The registry whose word on a version decides about its traffic."""

    uri: Annotated[
        str | None,
        Field(
            min_length=1, description="sqlite:///<absolute path>, or the http(s) address of an MLflow server; absent, local only: that of `make up`."
        ),
        AfterValidator(_check_uri),
    ] = None
    max_testing_weight: Annotated[int, Field(ge=0, le=100, description="Largest weight of a canary in state TESTING, in percent.")] = 50
    timeout_seconds: Annotated[float, Field(ge=0.1, le=600, description="Time limit of reading the registry.")] = 60


def registry_view(config: "StackConfig", environ: Mapping[str, str] = os.environ, ask: LookUp = look_up) -> RegistryView | None:
    """What the stack's registry says about its models; None for a stack without one.

    ConfigError for a local stack whose shell names no registry; RegistryError when it cannot be read within the time limit.
    """
    if config.registry is None:
        return None
    names = sorted({model.triton_name or name for name, model in config.models.items()})
    return ask(_location(config.registry, environ), names, config.registry.timeout_seconds)


def _location(spec: RegistrySpec, environ: Mapping[str, str]) -> Location:
    text = spec.uri or environ.get(REGISTRY_VARIABLE)
    if not text:
        raise ConfigError(
            f"registry.uri is absent, and {REGISTRY_VARIABLE} is not set: there is no registry to ask",
            hint='for the local stack: eval "$(make env)"; to ask none: pulumi config rm registry',
        )
    try:
        return Location.parse(text)
    except ValueError as error:
        raise ConfigError(f"{REGISTRY_VARIABLE} {error}", hint='eval "$(make env)"') from None
