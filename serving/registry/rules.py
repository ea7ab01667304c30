"""Which steps a version may take: pure decisions from what the registry says to what is to change there.

    register -> TESTING -> promote -> ACTIVE -> archive -> ARCHIVED -> restore -> TESTING

A candidate that failed goes from TESTING to ARCHIVED too. Changes are in an order in which every moment between two of them is a legal state:
an interrupted step leaves one stable version, and the same command goes on from there.
"""

from dataclasses import dataclass, field

from serving.registry.errors import COMMAND, RegistryError
from serving.registry.record import State, VersionRecord
from serving.registry.view import CANARY, PREVIOUS, STABLE, RegisteredModel

TRANSITIONS = frozenset(
    {
        (State.TESTING, State.ACTIVE),
        (State.ACTIVE, State.ARCHIVED),
        (State.TESTING, State.ARCHIVED),
        (State.ARCHIVED, State.TESTING),
    }
)


@dataclass(frozen=True)
class SetState:
    """A version gets another state."""

    version: int
    state: State


@dataclass(frozen=True)
class SetAlias:
    """An alias leads to this version from now on."""

    alias: str
    version: int


@dataclass(frozen=True)
class DropAlias:
    """An alias leads nowhere from now on."""

    alias: str


@dataclass(frozen=True)
class Create:
    """A version becomes known."""

    record: VersionRecord


@dataclass(frozen=True)
class Describe:
    """What is known about a version is renewed; its state, creation and foreign tags stay."""

    record: VersionRecord


Change = SetState | SetAlias | DropAlias | Create | Describe


@dataclass(frozen=True)
class Plan:
    """What a step changes, and the sentence for a person who took it."""

    said: str
    changes: tuple[Change, ...] = field(default=())


def register(model: RegisteredModel, record: VersionRecord) -> Plan:
    """Make a version known, in state TESTING. The same again renews its metrics; other content under the same number is refused."""
    at = f"model {model.name!r} version {record.version}"
    known = model.find(record.version)
    if known is None:
        return Plan(f"{at}: registered, {record.state}", (Create(record),))
    if known.artefact_sha256 != record.artefact_sha256:
        raise RegistryError(
            f"{at} is registered with artefact {known.artefact_sha256}, this one is {record.artefact_sha256}",
            hint="an entry that an earlier release made has a hash of less: delete it and register the version again; else a published version is "
            "immutable: new content (files, code, steps) gets a new version in model.yaml",
        )
    renewed = _renewed(known, record)
    return Plan(f"{at}: registered before, {known.state}", () if renewed == known else (Describe(renewed),))


def promote(model: RegisteredModel, version: int) -> Plan:
    """TESTING -> ACTIVE and alias stable; what was stable becomes previous and stays ACTIVE."""
    record, former = model.version(version), model.aliases.get(STABLE)
    at = f"model {model.name!r} version {version}"
    if record.state is State.ARCHIVED:
        raise RegistryError(f"{at} is {record.state}: only a version under test can be promoted", hint=_command("restore", model, version))
    changes: list[Change] = [] if record.state is State.ACTIVE else [_to(record, State.ACTIVE)]
    if former != version:
        if former is not None:
            changes.append(SetAlias(PREVIOUS, former))
        changes.append(SetAlias(STABLE, version))
    changes += _dropped(model, version, CANARY)
    after = "" if former in {None, version} else f", version {former} is {PREVIOUS}"
    return Plan(f"{at}: {'ACTIVE and stable' if changes else 'is stable already'}{after}", tuple(changes))


def rollback(model: RegisteredModel) -> Plan:
    """Stable is what was stable before. There is no second step back: repeated by another person it would bring the bad version in again."""
    former, current = model.aliases.get(PREVIOUS), model.aliases.get(STABLE)
    if former is None or former == current:
        raise RegistryError(
            f"model {model.name!r} has no {PREVIOUS} version to go back to (stable: {current or 'none'})",
            hint=f"name the version: {COMMAND} promote {model.name} <version>",
        )
    state = model.version(former).state
    if state is not State.ACTIVE:
        raise RegistryError(f"model {model.name!r} version {former}, alias {PREVIOUS}, is {state}, not ACTIVE", hint=_command("show", model, former))
    return Plan(
        f"model {model.name!r}: version {former} is stable again, version {current} stays ACTIVE", (SetAlias(STABLE, former), DropAlias(PREVIOUS))
    )


def archive(model: RegisteredModel, version: int) -> Plan:
    """-> ARCHIVED: the version may get no traffic. Refused for the stable one."""
    record = model.version(version)
    at = f"model {model.name!r} version {version}"
    if model.aliases.get(STABLE) == version:
        raise RegistryError(f"{at} is stable", hint=f"promote another version first: {COMMAND} promote {model.name} <version>")
    state = [] if record.state is State.ARCHIVED else [_to(record, State.ARCHIVED)]
    # The aliases first: an alias never leads to an archived version.
    return Plan(f"{at}: ARCHIVED", (*_dropped(model, version, CANARY), *_dropped(model, version, PREVIOUS), *state))


def restore(model: RegisteredModel, version: int) -> Plan:
    """ARCHIVED -> TESTING: the version has to prove itself anew."""
    record = model.version(version)
    return Plan(f"model {model.name!r} version {version}: TESTING", (_to(record, State.TESTING),))


def canary(model: RegisteredModel, version: int) -> Plan:
    """Mark the version that is tried beside the stable one. Its share of the traffic is the stack's."""
    record = model.version(version)
    at = f"model {model.name!r} version {version}"
    if record.state is State.ARCHIVED:
        raise RegistryError(f"{at} is {record.state}: it may get no traffic", hint=_command("restore", model, version))
    if model.aliases.get(STABLE) == version:
        raise RegistryError(f"{at} is stable already", hint="name another version")
    return Plan(f"{at}: canary", () if model.aliases.get(CANARY) == version else (SetAlias(CANARY, version),))


def _to(record: VersionRecord, state: State) -> SetState:
    if (record.state, state) not in TRANSITIONS:
        following = ", ".join(sorted(after for before, after in TRANSITIONS if before is record.state))
        raise RegistryError(
            f"model {record.model!r} version {record.version} is {record.state} and cannot become {state}",
            hint=f"from {record.state} leads: {following}",
        )
    return SetState(record.version, state)


def _dropped(model: RegisteredModel, version: int, alias: str) -> list[Change]:
    return [DropAlias(alias)] if model.aliases.get(alias) == version else []


def _renewed(known: VersionRecord, said: VersionRecord) -> VersionRecord:
    """What is known, with what is said now laid over it; a metric that is not said stays."""
    metrics = known.metrics.model_copy(update=said.metrics.model_dump(exclude_none=True))
    update = {"metrics": metrics, "data_set": said.data_set or known.data_set, "framework": said.framework, "requires": said.requires}
    return known.model_copy(update={**update, "source": said.source})


def _command(command: str, model: RegisteredModel, version: int) -> str:
    return f"{COMMAND} {command} {model.name} {version}"
