"""Steps of an ensemble: other models, and which of their tensors are joined under which name."""

from typing import Annotated

from pydantic import Field

from components.core.spec import Spec

TensorMap = Annotated[
    dict[str, str], Field(min_length=1, description="Tensor of the step's model -> tensor of the ensemble, by whose name steps are joined.")
]


class StepSpec(Spec):
    """One published version of another model, and its place in the ensemble."""

    model: Annotated[str, Field(min_length=1, description="Name of the model; not an ensemble itself.")]
    version: Annotated[int, Field(ge=1)]
    inputs: TensorMap
    outputs: TensorMap
