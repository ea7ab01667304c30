"""A model whose cost belongs to the call and not to the items in it, as on a card that is not full; it says what it was given and when.

Each answer is the item itself and the number of the call that computed it. An item that begins with `poison` makes the call raise, as real models do.
"""

import json
import time
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The class Triton's python backend looks for; its parameter `cost_ms` is the time of each call."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the cost from the config."""
        self._cost_seconds = float(json.loads(args["model_config"])["parameters"]["cost_ms"]["string_value"]) / 1000
        self._calls = 0

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer all requests after one wait."""
        time.sleep(self._cost_seconds)
        self._calls += 1
        inputs = [pb_utils.get_input_tensor_by_name(request, "content").as_numpy() for request in requests]
        if any(content.startswith(b"poison") for tensor in inputs for content in tensor.ravel()):
            raise ValueError("an item of this call is poison")
        return [self._response(tensor) for tensor in inputs]

    def _response(self, tensor: Any) -> Any:
        calls = pb_utils.Tensor("call", np.full(tensor.shape, self._calls, dtype=np.int64))
        return pb_utils.InferenceResponse(output_tensors=[calls, pb_utils.Tensor("label", tensor)])
