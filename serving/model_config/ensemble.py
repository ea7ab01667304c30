"""Ensembles: whether the steps of one fit together, and which models its server loads. Triton itself runs the steps of a request.

Triton finds most of these faults when it loads an ensemble, that is in a pod; some (a step whose result nobody uses) never.
"""

from collections.abc import Callable, Iterator, Sequence

from tritonclient.grpc import model_config_pb2 as pb

from components.core.faults import Fault
from components.errors import ManifestError
from serving.model_config.batching import BatchingSpec
from serving.model_config.instances import InstancesSpec
from serving.model_config.optimization import OptimizationSpec
from serving.model_config.spec import ServingSpec
from serving.model_manifest import ModelManifest, ModelVersionSpec, TensorSpec
from serving.model_steps import StepSpec

Find = Callable[[str], ModelManifest]


def server_models(manifest: ModelManifest, version: int, find: Find) -> tuple[tuple[ModelManifest, int], ...]:
    """Every model, with its version, that a server of `version` loads: the model itself first, then the steps of an ensemble, each once.

    `find` gives the manifest of a name. Raises ManifestError when the steps do not fit together.
    """
    published = manifest.version(version)
    steps = _steps(manifest, published, find)
    if steps:
        check_joins(manifest, published, steps)
    return (manifest, version), *{step.model: (model, step.version) for step, model in steps}.values()


def part_serving(served: ModelManifest, part: ModelManifest, serving: ServingSpec) -> ServingSpec:
    """What the stack says about `served`, as far as it concerns `part`, one of the models its server loads.

    An ensemble only passes tensors on: batch size and cache are its own. Batching and copies are those of each step; a step in Python has no use for
    a GPU or for what a backend may do to a network.
    """
    if served.format != "ensemble":
        return serving
    if part is served:
        return ServingSpec(batching=BatchingSpec(max_batch_size=serving.batching.max_batch_size), response_cache=serving.response_cache)
    plain = part.format == "python"
    return ServingSpec(
        batching=serving.batching,
        instances=InstancesSpec(count=serving.instances.count) if plain else serving.instances,
        rate_limiter=serving.rate_limiter,
        optimization=OptimizationSpec() if plain else serving.optimization,
    )


def ensemble_faults(manifest: ModelManifest, serving: ServingSpec) -> Iterator[Fault]:
    """Settings that no part of an ensemble could take."""
    if manifest.format != "ensemble":
        return
    reasons = {"sequence": "which has no instances: its steps would not see it", "warmup": "which Triton does not warm up"}
    for key, is_set in (("sequence", serving.sequence is not None), ("warmup", bool(serving.warmup))):
        if is_set:
            reason = f"model {manifest.name!r} is an ensemble, {reasons[key]}"
            yield Fault((key,), reason, f"drop {key}, or serve the step itself as a model of the stack")


def scheduling(steps: Sequence[StepSpec]) -> pb.ModelEnsembling:
    """`ensemble_scheduling` of config.pbtxt; every step names its version, whatever else the repository holds."""
    return pb.ModelEnsembling(
        step=[
            pb.ModelEnsembling.Step(model_name=step.model, model_version=step.version, input_map=step.inputs, output_map=step.outputs)
            for step in steps
        ]
    )


def check_joins(manifest: ModelManifest, version: ModelVersionSpec, steps: list[tuple[StepSpec, ModelManifest]]) -> None:
    """Raise ManifestError unless every tensor comes from one place, goes somewhere, and means the same at both ends."""
    where = f"ensemble {manifest.name!r} version {version.version}"
    made = {tensor.name: ("the request", tensor) for tensor in manifest.signature.inputs}
    used: dict[str, list[tuple[str, TensorSpec]]] = {tensor.name: [("the answer", tensor)] for tensor in manifest.signature.outputs}
    for step, model in steps:
        for name, tensor in _mapped(where, step, model, "inputs"):
            used.setdefault(name, []).append((f"step {step.model!r}", tensor))
        for name, tensor in _mapped(where, step, model, "outputs"):
            if name in made:
                raise _misfit(f"{where}: tensor {name!r} comes from {made[name][0]} and from step {step.model!r}", "give one of them another name")
            made[name] = (f"step {step.model!r}", tensor)
    for name, ends in used.items():
        if name not in made:
            raise _misfit(f"{where}: {ends[0][0]} needs tensor {name!r}, and no step gives it", f"tensors there are: {', '.join(sorted(made))}")
        for end, tensor in ends:
            _check_join(f"{where}: tensor {name!r}", made[name], (end, tensor))
    if unused := sorted(made.keys() - used.keys()):
        source = made[unused[0]][0]
        raise _misfit(
            f"{where}: tensor {unused[0]!r} of {source} goes nowhere", "use it in a step or in the answer, or drop it from the step's outputs"
        )
    _check_order(where, manifest, version)


def _steps(manifest: ModelManifest, version: ModelVersionSpec, find: Find) -> list[tuple[StepSpec, ModelManifest]]:
    """The steps and their models, each published and in one version."""
    found = [(step, find(step.model)) for step in version.steps]
    versions: dict[str, int] = {}
    for step, model in found:
        model.version(step.version)
        if model.format == "ensemble":
            raise _misfit(
                f"ensemble {manifest.name!r} version {version.version}: step {step.model!r} is an ensemble itself",
                "name the steps of that one instead",
            )
        if versions.setdefault(step.model, step.version) != step.version:
            raise _misfit(
                f"ensemble {manifest.name!r} version {version.version}: model {step.model!r} in versions {versions[step.model]} and {step.version}, "
                "and a server loads one version of a model",
                "let both steps use one version",
            )
    return found


def _mapped(where: str, step: StepSpec, model: ModelManifest, side: str) -> Iterator[tuple[str, TensorSpec]]:
    """Ensemble tensor and the step's own tensor, for every one that the step maps; all inputs must be mapped, outputs may be left out."""
    tensors = {tensor.name: tensor for tensor in getattr(model.signature, side)}
    mapping: dict[str, str] = getattr(step, side)
    if unknown := sorted(mapping.keys() - tensors.keys()):
        raise _misfit(f"{where}: step {step.model!r} has no tensor {unknown[0]!r} among its {side}", f"its {side}: {', '.join(tensors)}")
    if side == "inputs" and (missing := sorted(tensors.keys() - mapping.keys())):
        raise _misfit(f"{where}: step {step.model!r} is not given its input {missing[0]!r}", f"add {missing[0]}: <tensor> to the step's inputs")
    for own, name in mapping.items():
        yield name, tensors[own]


def _check_join(what: str, source: tuple[str, TensorSpec], target: tuple[str, TensorSpec]) -> None:
    (giver, given), (taker, taken) = source, target
    if given.datatype != taken.datatype:
        raise _misfit(f"{what} is {given.datatype} from {giver} and {taken.datatype} for {taker}", "let both have one datatype")
    fits = len(given.dims) == len(taken.dims) and all(-1 in pair or pair[0] == pair[1] for pair in zip(given.dims, taken.dims, strict=True))
    if not fits:
        raise _misfit(
            f"{what} has shape {list(given.dims)} from {giver} and {list(taken.dims)} for {taker}", "let the shapes agree; -1 fits every size"
        )


def _check_order(where: str, manifest: ModelManifest, version: ModelVersionSpec) -> None:
    """Raise ManifestError when steps wait for each other."""
    known = {tensor.name for tensor in manifest.signature.inputs}
    waiting = list(version.steps)
    while waiting:
        ready = [step for step in waiting if known.issuperset(step.inputs.values())]
        if not ready:
            names = ", ".join(repr(step.model) for step in waiting)
            raise _misfit(f"{where}: steps {names} wait for each other", "let the tensors lead from the request to the answer, without a circle")
        known.update(name for step in ready for name in step.outputs.values())
        waiting = [step for step in waiting if step not in ready]


def _misfit(message: str, hint: str) -> ManifestError:
    return ManifestError(message, hint=f"{hint} (serving/models/<name>/model.yaml)")
