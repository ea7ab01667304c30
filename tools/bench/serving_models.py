"""Models of the benchmark and of tests that need a cost they can rely on: repositories for a Triton of the harness."""

import shutil
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from loadtests.payloads import Signature
from serving.contract import CONFIG_FILE

FIXED_COST = Path(__file__).parent / "models" / "fixed_cost" / "model.py"


def signature(model: str) -> Signature:
    """Of every fixed-cost model."""
    return Signature(model, "content", "label")


def fixed_cost_config(name: str, *, cost_ms: float, max_batch: int, first_ms: float = 0) -> pb.ModelConfig:
    """The config of a model whose every call takes `cost_ms`, the first one `first_ms` more; one instance, no batching of different requests."""
    return pb.ModelConfig(
        name=name,
        backend="python",
        max_batch_size=max_batch,
        input=[pb.ModelInput(name="content", data_type=pb.TYPE_STRING, dims=[1])],
        output=[pb.ModelOutput(name="call", data_type=pb.TYPE_INT64, dims=[1]), pb.ModelOutput(name="label", data_type=pb.TYPE_STRING, dims=[1])],
        instance_group=[pb.ModelInstanceGroup(count=1, kind=pb.ModelInstanceGroup.KIND_CPU)],
        parameters={"cost_ms": pb.ModelParameter(string_value=str(cost_ms)), "first_ms": pb.ModelParameter(string_value=str(first_ms))},
    )


def write_model(repository: Path, config: pb.ModelConfig, code: Path = FIXED_COST) -> None:
    """Put the model of `config` into `repository`, version 1, readable for the server's user."""
    version = repository / config.name / "1"
    version.mkdir(parents=True)
    shutil.copyfile(code, version / code.name)
    (repository / config.name / CONFIG_FILE).write_text(text_format.MessageToString(config), encoding="utf-8")
    for path in (repository, *repository.rglob("*")):
        path.chmod(0o755)
