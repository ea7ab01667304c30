"""Which versions may get traffic: rules from what model.yaml and the registry say about them, and what the stack wants of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.core.faults import Fault
from serving.artefact import artefact_sha256
from serving.compatibility import provided_by, unmet
from serving.registry.errors import COMMAND
from serving.registry.record import State
from stacks.models import manifest_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from serving.registry.record import VersionRecord
    from serving.registry.view import RegisteredModel, RegistryView
    from stacks.config import ModelSpec, StackConfig

OTHER_IMAGE = "serve another version, or an image that meets it (images.triton, images.tritonVersion)"


def compatibility_faults(config: StackConfig, name: str, model: ModelSpec) -> Iterator[Fault]:
    """A version whose model.yaml, or that of a step of it, demands more than the image is known to have would not load."""
    provided = provided_by(config.images.variant, config.images.triton_version)
    keys = [("version",)] if model.canary is None else [("version",), ("canary", "version")]
    for key, version in zip(keys, model.versions, strict=True):
        for part, number in parts_of(manifest_of(name, model), version):
            for clause in unmet(part.version(number).requires, provided):
                yield Fault(("models", name, *key), f"{part.name} version {number} {clause}", OTHER_IMAGE)


def registry_faults(config: StackConfig, view: RegistryView) -> Iterator[Fault]:
    """Every version that gets traffic although its record forbids it. A canary of weight 0 gets none, whatever its record says."""
    if config.registry is None:
        return
    provided = provided_by(config.images.variant, config.images.triton_version)
    for name, model in config.models.items():
        registered = view.model(model.triton_name or name)
        at = ("models", name)
        yield from _stable_faults(name, model, registered, (*at, "version"), provided)
        if model.canary is not None and model.canary.weight > 0:
            yield from _canary_faults(config.registry.max_testing_weight, name, model, registered, provided)


def _stable_faults(name: str, model: ModelSpec, registered: RegisteredModel, key: tuple[str, ...], provided: Mapping[str, str]) -> Iterator[Fault]:
    record = registered.find(model.version)
    if record is not None and record.state is not State.ACTIVE:
        command = "promote" if record.state is State.TESTING else "restore"
        yield Fault(key, f"is {record.state} in the registry, and the stable version must be ACTIVE", _way(command, registered, model.version))
    yield from _record_faults(name, model, registered, model.version, key, provided)


def _canary_faults(max_testing_weight: int, name: str, model: ModelSpec, registered: RegisteredModel, provided: Mapping[str, str]) -> Iterator[Fault]:
    assert model.canary is not None  # noqa: S101  (the caller asked)
    version, weight = model.canary.version, model.canary.weight
    key = ("models", name, "canary", "weight")
    record = registered.find(version)
    if record is not None and record.state is State.ARCHIVED:
        way = f"pulumi config set --path models.{name}.canary.weight 0, or: {_way('restore', registered, version)}"
        yield Fault(key, f"version {version} is ARCHIVED in the registry and gets no traffic", way)
    if record is not None and record.state is State.TESTING and weight > max_testing_weight:
        reason = f"version {version} is TESTING in the registry and gets at most registry.maxTestingWeight {max_testing_weight}"
        yield Fault(key, reason, f"lower the weight, or: {_way('promote', registered, version)}")
    yield from _record_faults(name, model, registered, version, key, provided)


def _record_faults(
    name: str, model: ModelSpec, registered: RegisteredModel, version: int, key: tuple[str, ...], provided: Mapping[str, str]
) -> Iterator[Fault]:
    """What must be true of any version with traffic: it is registered, as the artefact that is served, for a server like the image's."""
    record = registered.find(version)
    if record is None:
        # It is TESTING at first, which is not enough for the stable one.
        missing = ("register", "promote") if version == model.version else ("register",)
        said = "".join(f"; {sentence}" for sentence in registered.unreadable)
        yield Fault(
            key,
            f"version {version} of {registered.name!r} is not in the registry{said}",
            " && ".join(_way(command, registered, version) for command in missing),
        )
        return
    yield from _artefact_faults(record, artefact_sha256(manifest_of(name, model), version), key)
    for clause in unmet(record.requires, provided):
        yield Fault(key, f"version {version} {clause}, says the registry", OTHER_IMAGE)
    if "triton" in record.requires and "triton" not in provided:
        way = "pulumi config set --path images.tritonVersion <what GET /v2 of the server answers>"
        yield Fault(key, f"version {version} needs triton {record.requires['triton']}, and the image's Triton is not known", way)


def _artefact_faults(record: VersionRecord, served: str, key: tuple[str, ...]) -> Iterator[Fault]:
    if record.artefact_sha256 != served:
        reason = f"version {record.version} is registered with artefact {record.artefact_sha256[:12]}, and model.yaml with its code has {served[:12]}"
        way = (
            "a published version is immutable: take model.yaml and the code beside it back to what was registered, or publish a new version; "
            "a registry that an earlier release filled has hashes of less: delete the entry in MLflow and register the version again"
        )
        yield Fault(key, reason, way)


def _way(command: str, registered: RegisteredModel, version: int) -> str:
    return f"{COMMAND} {command} {registered.name} {version}"
