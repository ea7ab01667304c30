"""Ensembles: steps that fit together are rendered as Triton takes them, and every kind of misfit is named before anything is made."""

from copy import deepcopy
from typing import Any

import pytest

from components.errors import ManifestError
from serving.model_config import ModelManifest, ServingSpec, parse_config, render_config, server_models
from serving.model_config.ensemble import Find

BATCHED = ServingSpec.model_validate({"batching": {"maxBatchSize": 4, "preferredSizes": [4]}})


def tensor(name: str, datatype: str = "FP32", dims: tuple[int, ...] = (-1, 1)) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "dims": list(dims)}


def step(model: str, inputs: dict[str, str], outputs: dict[str, str], version: int = 1) -> dict[str, Any]:
    return {"model": model, "version": version, "inputs": inputs, "outputs": outputs}


def single(name: str, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> dict[str, Any]:
    """A model of its own with versions 1 and 2."""
    versions = [{"version": number, "description": "", "memoryMib": 10} for number in (1, 2)]
    signature = {"inputs": inputs, "outputs": outputs}
    return {"name": name, "description": "", "licence": "", "format": "python", "signature": signature, "loadBudgetSeconds": 5, "versions": versions}


READ = single("read", [tensor("file", "BYTES")], [tensor("pixels", dims=(-1, 3, -1)), tensor("width", "INT32")])
GUESS = single("guess", [tensor("x", dims=(-1, 3, -1))], [tensor("y", dims=(-1, -1))])
STEPS = [step("read", {"file": "image"}, {"pixels": "rows"}), step("guess", {"x": "rows"}, {"y": "scores"})]
WHOLE: dict[str, Any] = {
    "name": "whole",
    "description": "",
    "licence": "",
    "format": "ensemble",
    "signature": {"inputs": [tensor("image", "BYTES")], "outputs": [tensor("scores", dims=(-1, 10))]},
    "versions": [{"version": 1, "description": "", "steps": STEPS}],
}


def manifest(values: dict[str, Any]) -> ModelManifest:
    return ModelManifest.model_validate(values)


def ensemble(steps: list[dict[str, Any]], **changes: Any) -> ModelManifest:
    return manifest({**deepcopy(WHOLE), **changes, "versions": [{"version": 1, "description": "", "steps": steps}]})


def finder(*others: dict[str, Any]) -> Find:
    known = {values["name"]: manifest(values) for values in (READ, GUESS, *others)}
    return known.__getitem__


def test_a_server_of_an_ensemble_loads_it_and_each_step_once_in_the_version_it_names():
    steps = [step("read", {"file": "image"}, {"pixels": "rows"}, 2), step("guess", {"x": "rows"}, {"y": "scores"})]
    loaded = server_models(ensemble(steps), 1, finder())
    assert [(model.name, version) for model, version in loaded] == [("whole", 1), ("read", 2), ("guess", 1)]


def test_a_model_on_its_own_is_all_that_its_server_loads():
    assert server_models(manifest(READ), 2, finder()) == ((manifest(READ), 2),)


def test_an_ensemble_is_rendered_as_triton_takes_it():
    """Without instances and without a batcher: Triton refuses both in an ensemble, and each step has its own."""
    config = parse_config(render_config(manifest(WHOLE), 1, BATCHED, "cpu"))
    assert (config.platform, config.backend, config.max_batch_size) == ("ensemble", "", 4)
    assert not config.instance_group
    assert config.WhichOneof("scheduling_choice") == "ensemble_scheduling"
    assert [(each.model_name, each.model_version, dict(each.input_map), dict(each.output_map)) for each in config.ensemble_scheduling.step] == [
        ("read", 1, {"file": "image"}, {"pixels": "rows"}),
        ("guess", 1, {"x": "rows"}, {"y": "scores"}),
    ]
    assert list(config.version_policy.specific.versions) == [1]


MISFITS = {
    "a step that nobody published": ([step("read", {"file": "image"}, {"pixels": "rows"}, 3)], "model 'read' has no version 3"),
    "an input of the step that it does not have": (
        [step("read", {"files": "image"}, {"pixels": "rows"})],
        "step 'read' has no tensor 'files' among its inputs",
    ),
    "an output of the step that it does not have": (
        [step("read", {"file": "image"}, {"pixel": "rows"})],
        "step 'read' has no tensor 'pixel' among its outputs",
    ),
    "a tensor that no step gives": ([step("guess", {"x": "row"}, {"y": "scores"})], "step 'guess' needs tensor 'row', and no step gives it"),
    "an answer that no step gives": (
        [STEPS[0], step("guess", {"x": "rows"}, {"y": "score"})],
        "the answer needs tensor 'scores', and no step gives it",
    ),
    "a tensor from two steps": (
        [*STEPS, step("guess", {"x": "rows"}, {"y": "scores"})],
        "tensor 'scores' comes from step 'guess' and from step 'guess'",
    ),
    "a result that nobody uses": (
        [step("read", {"file": "image"}, {"pixels": "rows", "width": "width"}), STEPS[1]],
        "tensor 'width' of step 'read' goes nowhere",
    ),
    "another datatype": (
        [STEPS[0], step("guess", {"x": "image"}, {"y": "scores"})],
        "tensor 'image' is BYTES from the request and FP32 for step 'guess'",
    ),
    "another shape": (
        [STEPS[0], step("guess", {"x": "rows"}, {"y": "more"}), step("guess", {"x": "more"}, {"y": "scores"})],
        r"tensor 'more' has shape \[-1, -1\] from step 'guess' and \[-1, 3, -1\] for step 'guess'",
    ),
    "one model in two versions": (
        [STEPS[0], STEPS[1], step("read", {"file": "image"}, {"pixels": "more"}, 2)],
        "model 'read' in versions 1 and 2, and a server loads one version",
    ),
}


@pytest.mark.parametrize(("steps", "reason"), MISFITS.values(), ids=MISFITS)
def test_steps_that_do_not_fit_are_refused(steps: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(ManifestError, match=reason):
        server_models(ensemble(steps), 1, finder())


def test_an_input_of_a_step_that_is_left_out_is_refused():
    both = single("both", [tensor("x", dims=(-1, 3, -1)), tensor("z", dims=(-1, 3, -1))], [tensor("y", dims=(-1, -1))])
    with pytest.raises(ManifestError, match="step 'both' is not given its input 'z'"):
        server_models(ensemble([STEPS[0], step("both", {"x": "rows"}, {"y": "scores"})]), 1, finder(both))


def test_an_input_of_the_request_that_goes_nowhere_is_refused():
    signature = {"inputs": [*WHOLE["signature"]["inputs"], tensor("hint", "BYTES")], "outputs": WHOLE["signature"]["outputs"]}
    with pytest.raises(ManifestError, match="tensor 'hint' of the request goes nowhere"):
        server_models(ensemble(STEPS, signature=signature), 1, finder())


def test_steps_that_wait_for_each_other_are_refused():
    mix = single("mix", [tensor("x", dims=(-1, 3, -1)), tensor("z", dims=(-1, 3, -1))], [tensor("y", dims=(-1, 3, -1)), tensor("s", dims=(-1, -1))])
    circle = [STEPS[0], step("mix", {"x": "rows", "z": "back"}, {"y": "back", "s": "scores"})]
    with pytest.raises(ManifestError, match="steps 'mix' wait for each other"):
        server_models(ensemble(circle), 1, finder(mix))


def test_an_ensemble_is_no_step():
    with pytest.raises(ManifestError, match="step 'whole' is an ensemble itself"):
        server_models(ensemble([step("whole", {"image": "image"}, {"scores": "scores"})]), 1, finder(WHOLE))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({**WHOLE, "versions": [{"version": 1, "description": ""}]}, "steps are needed"),
        ({**READ, "versions": [{**READ["versions"][0], "steps": STEPS}]}, "steps belong to an ensemble"),
        ({**WHOLE, "versions": [{**WHOLE["versions"][0], "memoryMib": 5}]}, "memoryMib 5: 0 for an ensemble"),
        ({**READ, "versions": [{"version": 1, "description": ""}]}, "memoryMib 0"),
        ({**WHOLE, "loadBudgetSeconds": 5}, "loadBudgetSeconds 5: 0 for an ensemble"),
        ({**READ, "loadBudgetSeconds": 0}, "loadBudgetSeconds 0"),
        ({**READ, "format": "onnx"}, "files are needed"),
    ],
)
def test_a_version_has_what_its_format_needs(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        manifest(values)
