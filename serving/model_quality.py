"""What a derived version of a model must keep of the one it comes from."""

from typing import Annotated

from pydantic import Field

from components.core.spec import Spec


class QualitySpec(Spec):
    """What a derived version must keep; the optimisation pipeline (serving/optimise) measures it and refuses what does not."""

    reference: Annotated[int, Field(ge=1, description="The version it is derived from.")]
    minimum_agreement: Annotated[
        float, Field(gt=0, lt=1, description="Least share of inputs with the reference's answer, by the low end of a 95 % interval.")
    ]
