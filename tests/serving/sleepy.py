"""A model whose every run takes as long as its caller says, for tests of what happens meanwhile."""

from pathlib import Path

from serving.model_config import parse_config

MODEL = "sleepy"
# What the model says in the server's log.
BEGINS = "a run begins"
SOURCE = """
import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "seconds").as_numpy() for request in requests]
        print("a run begins", flush=True)
        time.sleep(max(float(seconds.max()) for seconds in inputs))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("slept", seconds)]) for seconds in inputs]
"""
CONFIG = """
name: "{name}"
backend: "python"
max_batch_size: 8
input {{ name: "seconds" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "slept" data_type: TYPE_FP32 dims: 1 }}
instance_group {{ count: {instances} kind: KIND_CPU }}
dynamic_batching {{ }}
"""


def sleepy_repository(folder: Path, *, names: tuple[str, ...] = (MODEL,), instances: int = 1) -> Path:
    """A repository with the model under each of `names`, readable by the server's user."""
    for name in names:
        version = folder / name / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(SOURCE)
        config = CONFIG.format(name=name, instances=instances)
        parse_config(config)
        (folder / name / "config.pbtxt").write_text(config)
    folder.chmod(0o755)
    return folder


def request_json(seconds: float, items: int = 1) -> dict[str, object]:
    """The body of an inference that keeps the model busy for `seconds`."""
    return {"inputs": [{"name": "seconds", "datatype": "FP32", "shape": [items, 1], "data": [seconds] * items}]}
