"""What the front of a model is told: the model's signature, where it is reached, and the stack's limits. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from components.core.front import FrontLimitsSpec
from components.front.front_manifest import DRAIN_SECONDS
from components.traffic.gateway_manifest import HTTP_SERVER_PORT, SERVICE_HOST
from components.traffic.istio_manifest import external_host
from serving.front.settings import FrontSettingsSpec, ModelTargetSpec
from stacks.models import manifest_of

if TYPE_CHECKING:
    from components.front.spec import FrontSpec
    from serving.front.settings import Priority
    from serving.model_config import BatchingSpec
    from stacks.config import StackConfig


def front_settings(config: StackConfig, name: str, front: FrontSpec) -> str:
    """The front's settings as it reads them; the same stack gives the same bytes. ManifestError for a model that takes no files.

    Its requests go to the gateway under the model's own host, so that the weights hold for them as for everyone.
    """
    model = config.models[name]
    manifest = manifest_of(name, model)
    settings = FrontSettingsSpec(
        model=ModelTargetSpec(
            name=manifest.name,
            address=f"{SERVICE_HOST}:{HTTP_SERVER_PORT}",
            authority=external_host(model.identity(name, config.cluster.namespace), model.routing, config.gateway.domain),
            signature=manifest.signature,
            max_batch_size=model.batching.max_batch_size,
            priorities=_priorities(model.batching),
        ),
        limits=FrontLimitsSpec.model_validate(front.model_dump(include=set(FrontLimitsSpec.model_fields))),
        p99_ms=model.slo.p99_ms,
        body_memory_mib=front.body_memory_mib,
        drain_seconds=DRAIN_SECONDS,
    )
    return json.dumps(settings.model_dump(mode="json", by_alias=True), indent=2, sort_keys=True) + "\n"


def _priorities(batching: BatchingSpec) -> dict[Priority, int]:
    """The highest of Triton's levels, which is 1, for those who wait, the lowest for those who do not; none where there is but one."""
    levels = batching.priorities.levels if batching.priorities else 1
    return {"realtime": 1, "batch": levels} if levels > 1 else {}
