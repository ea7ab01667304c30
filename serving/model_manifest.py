"""model.yaml, typed: what a model is and where its files come from. Published and immutable; how it is served belongs to the stack."""

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from components.core.spec import Spec
from components.errors import ManifestError
from serving import plain_yaml
from serving.compatibility import FrameworkSpec, Requirements
from serving.model_check import CheckSpec, CheckTensor, check_faults, check_inputs
from serving.model_files import QUANTISATIONS, SourceFileSpec, check_file_names
from serving.model_quality import QualitySpec
from serving.model_steps import StepSpec

MODELS_DIR = Path(__file__).resolve().parent / "models"

# python: code of ours beside the files; onnx and the following: the network alone; ensemble: steps that are other models.
Format = Literal["python", "onnx", "torchscript", "savedmodel", "tensorrt", "ensemble"]
# Names of the KServe protocol, which model.yaml, requests and answers share.
Datatype = Literal["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BF16", "BYTES"]
Dimension = Annotated[int, Field(ge=-1, lt=2**63, description="Size of an axis; -1: variable.")]
ControlValue = Annotated[int, Field(ge=-(2**31), lt=2**31)]
# 32 TiB, as in components/inference/spec.py: beyond lies a slip of the hand.
Mib = Annotated[int, Field(ge=0, le=32 * 1024 * 1024)]
MAX_SHOWN = 100
MODEL_NAME = re.compile("^[A-Za-z0-9_][A-Za-z0-9_.-]*$")
# As exporters name tensors: "input:0", "InceptionV3/Predictions/Softmax:0".
TensorName = Annotated[str, Field(pattern="^[A-Za-z0-9_.:/-]+$")]
# A YAML sequence arrives as a list; only the container is converted, the items stay strict.
Sequence = Field(strict=False, min_length=1)


class TensorSpec(Spec):
    """An input or output of a model, with the batch axis where it has one."""

    name: TensorName
    datatype: Datatype
    dims: Annotated[tuple[Dimension, ...], Sequence]

    @model_validator(mode="after")
    def _axes_are_not_empty(self) -> Self:
        if 0 in self.dims:
            raise ValueError(f"tensor {self.name!r}: an axis of size 0 holds nothing; -1 stands for a variable axis")
        return self


class ControlSpec(Spec):
    """An input that no caller fills: the server tells the model where a sequence of requests begins, goes on and ends.

    `start`, `end` and `ready` get `values`, the first for no and the second for yes; `corrid` gets the sequence's id.
    """

    name: TensorName
    kind: Literal["start", "end", "ready", "corrid"]
    datatype: Literal["INT32", "FP32", "BOOL", "UINT64", "INT64", "UINT32", "BYTES"]
    values: Annotated[tuple[ControlValue, ControlValue], Field(strict=False)] = (0, 1)

    @model_validator(mode="after")
    def _datatype_fits_the_kind(self) -> Self:
        flags, ids = ("INT32", "FP32", "BOOL"), ("UINT64", "INT64", "UINT32", "INT32", "BYTES")
        known = ids if self.kind == "corrid" else flags
        if self.datatype not in known:
            raise ValueError(f"control {self.name!r}: kind {self.kind} has one of the datatypes {', '.join(known)}, not {self.datatype}")
        if self.datatype == "BOOL" and not {*self.values} <= {0, 1}:
            raise ValueError(f"control {self.name!r}: values of datatype BOOL are 0 and 1, not {list(self.values)}")
        if self.kind == "corrid" and self.values != (0, 1):
            raise ValueError(f"control {self.name!r}: kind corrid gets the id of the sequence; drop values")
        return self


class SignatureSpec(Spec):
    """Tensors of a request and of its answer."""

    inputs: Annotated[tuple[TensorSpec, ...], Sequence]
    outputs: Annotated[tuple[TensorSpec, ...], Sequence]
    controls: Annotated[
        tuple[ControlSpec, ...], Field(strict=False, description="Inputs that the server fills; such a model works on sequences.")
    ] = ()

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        fed = [tensor.name for tensor in self.inputs] + [control.name for control in self.controls]
        for kind, names in (("inputs and controls", fed), ("outputs", [tensor.name for tensor in self.outputs])):
            if len(set(names)) != len(names):
                raise ValueError(f"{kind} {names}: a tensor is listed once")
        kinds = [control.kind for control in self.controls]
        if len(set(kinds)) != len(kinds):
            raise ValueError(f"controls of kinds {kinds}: a kind is listed once")
        return self

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        return self.inputs + self.outputs


class WheelSpec(Spec):
    """The distribution that ships the model; its hash is pinned in serving/requirements.txt."""

    distribution: str
    version: str


class ModelVersionSpec(Spec):
    """One published version."""

    version: Annotated[int, Field(ge=1, lt=10**18)]
    description: str
    files: Annotated[tuple[SourceFileSpec, ...], Field(strict=False, description="None for an ensemble, or where the code is all.")] = ()
    steps: Annotated[tuple[StepSpec, ...], Field(strict=False, description="Of an ensemble, and of nothing else.")] = ()
    memory_mib: Annotated[Mib, Field(description="Memory of one instance when loaded and busy; of an ensemble none beside its steps'.")] = 0
    memory_mib_per_row: Annotated[Mib, Field(description="What each row at work adds to memoryMib, for the largest row there can be.")] = 0
    waiting_mib_per_row: Annotated[Mib, Field(description="Memory of the server for a row that waits: of a step slower than its forerunners.")] = 0
    gpu_memory_mib: Annotated[
        Mib | None, Field(gt=0, description="GPU memory of one instance when loaded and busy; needed to serve it with instances of kind gpu.")
    ] = None
    framework: Annotated[FrameworkSpec | None, Field(description="What wrote the network.")] = None
    requires: Annotated[Requirements, Field(description="Releases of a server's parts that can run it, as specifiers: {triton: '>=2.40'}.")] = Field(
        default_factory=dict
    )
    quality: Annotated[QualitySpec | None, Field(description="Of a version with a quantised network.")] = None

    @model_validator(mode="after")
    def _files_lie_beside_each_other(self) -> Self:
        check_file_names([file.name for file in self.files])
        return self

    @property
    def derived(self) -> bool:
        """Whether its network computes something else than the one it was made from."""
        return any(file.transformation in QUANTISATIONS for file in self.files)


class ModelManifest(Spec):
    """A model of the repository; `name` is its directory and its name in Triton, which refuses any other."""

    name: Annotated[str, Field(pattern=MODEL_NAME.pattern)]
    description: str
    licence: str
    format: Annotated[Format, Field(description="What the files are; which backend runs them depends on the image.")]
    wheel: Annotated[WheelSpec | None, Field(description="What files of kind wheel are taken from.")] = None
    signature: SignatureSpec
    decoupled: Annotated[bool, Field(description="Whether it may send any number of answers to a request; python only.")] = False
    parameters: Annotated[dict[str, str], Field(description="What its backend or its model.py is told, by name.")] = Field(default_factory=dict)
    check: Annotated[CheckSpec | None, Field(description="Absent only for a model that is asked as a step of an ensemble.")] = None
    load_budget_seconds: Annotated[
        int, Field(ge=0, le=7200, description="Longest time from start to ready that is not a fault; 0 for an ensemble.")
    ] = 0
    shared_memory_mib: Annotated[Mib, Field(description="POSIX shared memory that one instance needs.")] = 0
    shared_memory_mib_per_row: Annotated[Mib, Field(description="For each row, beside the request itself: inputs and outputs.")] = 0
    python_requirements: Annotated[tuple[str, ...], Field(strict=False, description="Distributions that model.py imports.")] = ()
    versions: Annotated[tuple[ModelVersionSpec, ...], Sequence]

    @model_validator(mode="after")
    def _versions_are_distinct(self) -> Self:
        numbers = self.version_numbers
        if len(set(numbers)) != len(numbers):
            raise ValueError(f"versions {list(numbers)}: a version is published once")
        return self

    @model_validator(mode="after")
    def _versions_have_what_their_format_needs(self) -> Self:
        ensemble = self.format == "ensemble"
        if ensemble == (self.load_budget_seconds > 0):
            raise ValueError(
                f"loadBudgetSeconds {self.load_budget_seconds}: 0 for an ensemble, whose steps have budgets, and more for every other model"
            )
        for version in self.versions:
            what = f"version {version.version} of format {self.format}"
            if ensemble != bool(version.steps):
                raise ValueError(f"{what}: steps {'are needed' if ensemble else 'belong to an ensemble'}")
            if ensemble == (version.memory_mib > 0):
                raise ValueError(
                    f"{what}: memoryMib {version.memory_mib}: 0 for an ensemble, whose steps need memory, and more for every other model"
                )
            if version.files and ensemble:
                raise ValueError(f"{what}: files belong to the models of its steps")
            if not version.files and self.format not in ("ensemble", "python"):
                raise ValueError(f"{what}: files are needed")
        return self

    @model_validator(mode="after")
    def _files_have_their_source(self) -> Self:
        for version in self.versions:
            for file in version.files:
                if file.source.kind == "wheel" and self.wheel is None:
                    raise ValueError(f"file {file.name!r} of version {version.version} is taken from the model's wheel, and `wheel` names none")
        return self

    @model_validator(mode="after")
    def _derived_versions_are_judged(self) -> Self:
        originals = {version.version for version in self.versions if not version.derived}
        for version in self.versions:
            if version.derived != (version.quality is not None):
                raise ValueError(f"version {version.version}: a version with a quantised network states its `quality`, and no other does")
            if version.quality and version.quality.reference not in originals:
                raise ValueError(f"version {version.version}: its reference {version.quality.reference} is no version with original files")
        return self

    @model_validator(mode="after")
    def _check_is_a_request_and_its_answer(self) -> Self:
        if self.check and (faults := list(check_faults(self.check, self.signature.inputs, self.signature.outputs))):
            raise ValueError("; ".join(faults))
        return self

    @property
    def check_inputs(self) -> tuple[CheckTensor, ...]:
        """What the check asks with; nothing without a check. ManifestError for a file that cannot be read."""
        return () if self.check is None else check_inputs(self.check, self.signature.inputs, MODELS_DIR / self.name)

    @property
    def version_numbers(self) -> tuple[int, ...]:
        return tuple(version.version for version in self.versions)

    def version(self, number: int) -> ModelVersionSpec:
        """The version `number`; ManifestError when it was never published."""
        for version in self.versions:
            if version.version == number:
                return version
        raise ManifestError(
            f"model {self.name!r} has no version {number}",
            hint=f"published versions: {', '.join(map(str, self.version_numbers))} (serving/models/{self.name}/model.yaml)",
        )


def load_manifest(path: Path) -> ModelManifest:
    """Read a model.yaml; ManifestError names the file, the key and the reason."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ManifestError(f"{path} does not exist", hint=f"models there are: {', '.join(model_names())}") from None
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path} cannot be read: {error}", hint="it is a text file in UTF-8 that this user may read") from error
    return _parse_manifest(path, text)


@lru_cache(maxsize=64)
def _parse_manifest(path: Path, text: str) -> ModelManifest:
    """Kept, for a stack asks a dozen times for each of its models, and YAML in Python is slow."""
    try:
        content = json.dumps(plain_yaml.read(text))
    except ValueError as error:
        raise ManifestError(f"{path} cannot be read as YAML: {error}", hint="correct the syntax at the place named") from error
    try:
        # JSON mode, because YAML has the types of JSON: sequences and nothing finer.
        return ModelManifest.model_validate_json(content)
    except ValidationError as error:
        told = "; ".join(_fault(detail) for detail in error.errors(include_url=False))
        raise ManifestError(f"{path}: {told}", hint="correct the file; serving/models/README.md lists its keys") from error


def _fault(detail: ErrorDetails) -> str:
    """Key path, value and reason; of mappings and lists no value, for it would hide the reason."""
    where = ".".join(map(str, detail["loc"]))
    if not isinstance(detail["input"], dict | list):
        value = repr(detail["input"])
        where += " = " + (value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}... ({len(value)} characters)")
    reason = str(detail["ctx"]["error"]) if detail["type"] == "value_error" else detail["msg"]
    return f"{where}: {reason}" if where else reason


def model_names() -> list[str]:
    """Names of the models the serving image holds."""
    return sorted(path.parent.name for path in MODELS_DIR.glob("*/model.yaml"))


def model_manifest(triton_name: str) -> ModelManifest:
    """The manifest of the model that callers know as `triton_name`. ManifestError when its folder has another name than itself."""
    path = MODELS_DIR / triton_name / "model.yaml"
    manifest = load_manifest(path)
    if manifest.name != triton_name:
        raise ManifestError(f"{path}: name: is {manifest.name!r}, and the folder {triton_name!r}", hint="let both have one name")
    return manifest
