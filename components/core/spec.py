"""The base of every Spec: frozen, closed, camelCase in the stack file."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Spec(BaseModel):
    """Plain values a person may write in a stack file.

    Unknown keys are refused, values are not coerced (`"25"` and `true` are no numbers), keys are camelCase there and snake_case here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)
