"""What the registry says at one moment: models with their versions and aliases."""

from typing import Annotated

from pydantic import Field

from components.core.spec import Spec
from serving.registry.errors import COMMAND, RegistryError
from serving.registry.record import VersionRecord

# Who serves, who is tried beside it, who served before.
STABLE, CANARY, PREVIOUS = "stable", "canary", "previous"


class RegisteredModel(Spec):
    """One model; `aliases` lead to versions of the model repository. `unreadable` holds a sentence for each entry that is no record."""

    name: str
    versions: Annotated[tuple[VersionRecord, ...], Field(strict=False)] = ()
    aliases: dict[str, int] = Field(default_factory=dict)
    unreadable: Annotated[tuple[str, ...], Field(strict=False)] = ()

    def find(self, version: int) -> VersionRecord | None:
        return next((record for record in self.versions if record.version == version), None)

    def version(self, version: int) -> VersionRecord:
        """The record of `version`; RegistryError when there is none."""
        if (record := self.find(version)) is not None:
            return record
        known = ", ".join(str(record.version) for record in self.versions) or "none"
        said = "".join(f"\n  {sentence}" for sentence in self.unreadable)
        raise RegistryError(
            f"model {self.name!r}: version {version} is not registered (registered: {known}){said}",
            hint=f"{COMMAND} register {self.name} {version}",
        )

    def aliases_of(self, version: int) -> list[str]:
        return sorted(alias for alias, target in self.aliases.items() if target == version)


class RegistryView(Spec):
    """Every model of ours."""

    models: Annotated[tuple[RegisteredModel, ...], Field(strict=False)] = ()

    def model(self, name: str) -> RegisteredModel:
        """The model of that name, without versions where none is registered."""
        return next((model for model in self.models if model.name == name), RegisteredModel(name=name))
