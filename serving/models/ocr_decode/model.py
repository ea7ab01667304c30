"""Triton's side of the decoder: image files in, the recogniser's input out."""

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from decoding import ImageError, prepare


class TritonPythonModel:
    """The class Triton's python backend looks for."""

    def execute(self, requests: list[Any]) -> list[Any]:
        """Each request on its own: widths differ, so joining them would only pad."""
        return [self._answer(pb_utils.get_input_tensor_by_name(request, "image").as_numpy()) for request in requests]

    @staticmethod
    def _answer(images: np.ndarray) -> Any:
        try:
            pixels = prepare(list(images.ravel()))
        except ImageError as error:
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("pixels", pixels)])
