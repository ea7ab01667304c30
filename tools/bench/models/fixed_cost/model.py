"""A model whose cost belongs to the call and not to the items in it, as on a card that is not full; it says what it was given and when.

Each answer is the item itself and the number of the call that computed it. An item that begins with `poison` makes the call raise, as real models do.
"""

import json
import time
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The class Triton's python backend looks for; parameters `cost_ms` (of each call) and `first_ms` (of the first one besides)."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the costs from the config."""
        parameters = json.loads(args["model_config"])["parameters"]
        self._cost_seconds, self._first_seconds = (float(parameters[name]["string_value"]) / 1000 for name in ("cost_ms", "first_ms"))
        self._calls = 0

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer all requests after one wait."""
        time.sleep(self._cost_seconds + (0 if self._calls else self._first_seconds))
        self._calls += 1
        inputs = [pb_utils.get_input_tensor_by_name(request, "content").as_numpy() for request in requests]
        if any(content.startswith(b"poison") for tensor in inputs for content in tensor.ravel()):
            raise ValueError("an item of this call is poison")
        return [self._response(tensor) for tensor in inputs]

    def _response(self, tensor: Any) -> Any:
        calls = pb_utils.Tensor("call", np.full(tensor.shape, self._calls, dtype=np.int64))
        return pb_utils.InferenceResponse(output_tensors=[calls, pb_utils.Tensor("label", tensor)])
