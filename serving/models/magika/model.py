"""Triton's side of the classifier: tensors in, tensors out. Each version directory holds this file beside its own model.onnx."""

from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from classifier import Classifier


class TritonPythonModel:
    """The class Triton's python backend looks for."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the network of the version that Triton asks for."""
        self._classifier = Classifier(Path(args["model_repository"]) / args["model_version"])

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer all requests with one run of the network; each keeps the shape it came in."""
        inputs = [pb_utils.get_input_tensor_by_name(request, "content").as_numpy() for request in requests]
        results = iter(self._classifier.classify([content for tensor in inputs for content in tensor.ravel()]))
        return [self._response(tensor.shape, [next(results) for _ in range(tensor.size)]) for tensor in inputs]

    @staticmethod
    def _response(shape: tuple[int, ...], results: list[tuple[str, float]]) -> Any:
        """The label goes last: a binary answer then ends in readable text, which a shell can take off."""
        labels = np.array([label.encode() for label, _ in results], dtype=np.object_).reshape(shape)
        scores = np.array([score for _, score in results], dtype=np.float32).reshape(shape)
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("score", scores), pb_utils.Tensor("label", labels)])
