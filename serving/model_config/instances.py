"""Instance groups: copies of a model inside one server."""

from typing import Annotated, Literal

from pydantic import Field

from components.core.spec import Spec


class InstancesSpec(Spec):
    """Copies of a model inside one server."""

    count: Annotated[int, Field(ge=1, le=64, description="Copies per GPU (kind gpu) or per server (kind cpu).")] = 1
    kind: Literal["cpu", "gpu"] = "cpu"
