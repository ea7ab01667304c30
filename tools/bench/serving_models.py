"""Models of the benchmark and of tests that need a cost they can rely on: repositories for a Triton of the harness."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tritonclient.grpc import model_config_pb2 as pb

from loadtests.payloads import Signature
from serving.contract import CONFIG_FILE, REPOSITORY_PATH
from serving.model_config import (
    ModelFacts,
    ServingSpec,
    SignatureSpec,
    backend_of,
    build_config,
    config_message,
    config_text,
    part_serving,
    server_models,
    warmup_files,
)
from serving.model_manifest import TensorSpec, model_manifest
from tools.triton_process import serving_rootfs

FIXED_COST = Path(__file__).parent / "models" / "fixed_cost" / "model.py"
WARM_UP_FOLDER = "warmup"
CPU_CORES = 2.0


@dataclass(frozen=True)
class Served:
    """A model in a repository: its config, the directory its versions come from (None: the fixed-cost model), and its warm-up files."""

    config: pb.ModelConfig
    source: Path | None = None
    warmup: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.config.name)


def signature(model: str) -> Signature:
    """Of every model here: one file in, its class out."""
    return Signature(model, "content", "label")


FIXED_COST_SIGNATURE = SignatureSpec(
    inputs=(TensorSpec(name="content", datatype="BYTES", dims=(-1, 1)),),
    outputs=(TensorSpec(name="call", datatype="INT64", dims=(-1, 1)), TensorSpec(name="label", datatype="BYTES", dims=(-1, 1))),
)


def fixed_cost(name: str, serving: ServingSpec, *, cost_ms: float) -> Served:
    """A model whose every call takes `cost_ms`, whatever is in it."""
    facts = ModelFacts(
        name=name,
        backend=backend_of(name, "python", "cpu"),
        versions=(1,),
        signature=FIXED_COST_SIGNATURE,
        parameters={"cost_ms": str(cost_ms)},
    )
    return Served(config_message(facts, serving, cpu_cores=CPU_CORES))


def from_image(model: str, name: str, serving: ServingSpec) -> Served:
    """A model of the serving image, all its versions, under another name."""
    manifest = model_manifest(model)
    config = build_config(manifest, manifest.version_numbers[0], serving, "cpu", cpu_cores=CPU_CORES)
    config.name = name
    config.version_policy.CopyFrom(pb.ModelVersionPolicy(all=pb.ModelVersionPolicy.All()))
    return Served(config, _in_image(model), warmup_files(manifest, serving.warmup) if serving.warmup else {})


def server_of(model: str, serving: ServingSpec) -> list[Served]:
    """Everything that the server of a model of the image loads, under its own names: of an ensemble, its steps too."""
    manifest = model_manifest(model)
    parts = server_models(manifest, manifest.version_numbers[0], model_manifest)
    return [
        Served(build_config(part, version, part_serving(manifest, part, serving), "cpu", cpu_cores=CPU_CORES), _in_image(part.name))
        for part, version in parts
    ]


def _in_image(model: str) -> Path:
    return serving_rootfs().path / REPOSITORY_PATH.strip("/") / model


def write_models(repository: Path, *models: Served) -> None:
    """Put the models into `repository`, readable for the server's user."""
    for model in models:
        folder = repository / model.name
        if model.source is None:
            (folder / "1").mkdir(parents=True)
            shutil.copyfile(FIXED_COST, folder / "1" / FIXED_COST.name)
        else:
            shutil.copytree(model.source, folder, ignore=shutil.ignore_patterns(CONFIG_FILE))
        (folder / CONFIG_FILE).write_text(config_text(model.config), encoding="utf-8")
        for name, content in model.warmup.items():
            (folder / WARM_UP_FOLDER).mkdir(exist_ok=True)
            (folder / WARM_UP_FOLDER / name).write_bytes(content)
    for path in (repository, *repository.rglob("*")):
        path.chmod(0o755)
