"""What a front is told when it starts: one JSON document, written by the stack."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from components.core.front import FrontLimitsSpec
from components.core.spec import Spec
from components.errors import ConfigError
from serving.contract import FRONT_METRICS_PORT, FRONT_PORT
from serving.model_manifest import SignatureSpec
from serving.tensors import file_input

Priority = Literal["realtime", "batch"]
# For a model that takes no files.
NO_FILES_HINT = "drop `front` for this model; its clients send tensors over the v2 protocol"


class ModelTargetSpec(Spec):
    """The model behind the front: where its requests go, and what goes in and comes out.

    With `authority` the requests carry that host, so that a gateway at `address` routes them by the weights that hold for everyone.
    """

    name: Annotated[str, Field(min_length=1, description="Name in Triton, and in the front's own paths.")]
    address: Annotated[str, Field(pattern=r"^[^\s/]+:[0-9]+$", description="host:port that speaks gRPC.")]
    authority: Annotated[str | None, Field(description="Host the requests name; absent: the address.")] = None
    connections: Annotated[int, Field(ge=1, le=64, description="Connections kept open; requests take turns.")] = 2
    signature: SignatureSpec
    max_batch_size: Annotated[int, Field(ge=0, description="Largest batch; 0: one item a request.")] = 0
    priorities: Annotated[dict[Priority, int], Field(description="Triton's priority level of each; empty: it has none.")] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _takes_files(self) -> Self:
        file_input(self.signature.inputs, NO_FILES_HINT)
        return self


class FrontSettingsSpec(Spec):
    """Everything a front needs to know."""

    model: ModelTargetSpec
    limits: FrontLimitsSpec = FrontLimitsSpec()
    p99_ms: Annotated[float, Field(gt=0, description="Latency objective: an edge of the histogram's buckets.")]
    body_memory_mib: Annotated[int, Field(ge=1, description="Bodies held at once, over all requests.")]
    port: Annotated[int, Field(ge=0, le=65535, description="0: a free one.")] = FRONT_PORT
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = FRONT_METRICS_PORT
    drain_seconds: Annotated[float, Field(ge=0, le=300, description="From SIGTERM until connections are refused: proxies learn meanwhile.")] = 5

    @model_validator(mode="after")
    def _the_largest_request_fits_beside_an_item(self) -> Self:
        if self.body_memory_mib < 2 * self.limits.max_request_mib:
            raise ValueError(
                f"bodyMemoryMib {self.body_memory_mib} cannot hold an item of a batch beside a request, of maxRequestMib "
                f"{self.limits.max_request_mib} each: raise it, or lower the other"
            )
        return self


def load_settings(path: Path) -> FrontSettingsSpec:
    """Read the document at `path`; ConfigError names the file, the key and the reason."""
    try:
        return FrontSettingsSpec.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", hint="name the settings file: python -m serving.front <file>") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {error}", hint="name the settings file: python -m serving.front <file>") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "(root)"
        raise ConfigError(f"{path}: {key}: {first['msg']}", hint="see serving/front/settings.py for the keys") from error
