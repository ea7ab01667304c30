"""Triton's side of the text decoder: the recogniser's output in, text and score out."""

from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from ctc import Characters


class TritonPythonModel:
    """The class Triton's python backend looks for."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the table of the version that Triton asks for."""
        self._characters = Characters.read(Path(args["model_repository"]) / args["model_version"] / "characters.txt")

    def execute(self, requests: list[Any]) -> list[Any]:
        """A text for each line of each request."""
        return [self._answer(pb_utils.get_input_tensor_by_name(request, "distributions").as_numpy()) for request in requests]

    def _answer(self, lines: np.ndarray) -> Any:
        """The text goes last: a binary answer then ends in readable text, which a shell can take off."""
        results = [self._characters.decode(line) for line in lines]
        scores = np.array([[score] for _, score in results], dtype=np.float32)
        texts = np.array([[text.encode()] for text, _ in results], dtype=np.object_)
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("score", scores), pb_utils.Tensor("text", texts)])
