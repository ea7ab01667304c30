"""Which steps a version may take: decisions, and what is true after any sequence of them, also of interrupted ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.registry import rules
from serving.registry.errors import RegistryError
from serving.registry.record import MetricsSpec, State
from serving.registry.rules import Create, Describe, DropAlias, SetAlias, SetState
from serving.registry.view import CANARY, PREVIOUS, STABLE, RegisteredModel
from tests.registries import MODEL, record

VERSIONS = st.integers(1, 4)
STEPS = {"promote": rules.promote, "archive": rules.archive, "restore": rules.restore, "canary": rules.canary}


def model(*states: State, **aliases: int) -> RegisteredModel:
    """Versions 1, 2, ... in these states."""
    return RegisteredModel(name=MODEL, versions=tuple(record(number, state=state) for number, state in enumerate(states, 1)), aliases=aliases)


def after(before: RegisteredModel, *changes: rules.Change) -> RegisteredModel:
    """What a store would hold after these changes."""
    records = {each.version: each for each in before.versions}
    aliases = dict(before.aliases)
    for change in changes:
        match change:
            case SetState(version, state):
                records[version] = records[version].model_copy(update={"state": state})
            case SetAlias(alias, version):
                aliases[alias] = version
            case DropAlias(alias):
                del aliases[alias]
            case Create(new) | Describe(new):
                records[new.version] = new
    return RegisteredModel(name=before.name, versions=tuple(records.values()), aliases=aliases)


def check_legal(now: RegisteredModel, *, had_stable: bool) -> None:
    assert had_stable <= (STABLE in now.aliases)
    for alias in (STABLE, PREVIOUS):
        if alias in now.aliases:
            assert now.version(now.aliases[alias]).state is State.ACTIVE
    if CANARY in now.aliases:
        assert now.version(now.aliases[CANARY]).state is not State.ARCHIVED


actions = st.lists(st.tuples(st.sampled_from([*STEPS, "rollback"]), VERSIONS, st.none() | st.integers(0, 3)), max_size=25)


@given(actions)
def test_no_sequence_of_steps_interrupted_anywhere_leaves_an_illegal_state(taken: list[tuple[str, int, int | None]]) -> None:
    now = model(State.TESTING, State.TESTING, State.TESTING)
    for name, version, interrupted_after in taken:
        try:
            plan = rules.rollback(now) if name == "rollback" else STEPS[name](now, version)
        except RegistryError:
            continue
        had_stable = STABLE in now.aliases
        for change in plan.changes[:interrupted_after]:
            if isinstance(change, SetState):
                assert (now.version(change.version).state, change.state) in rules.TRANSITIONS
            now = after(now, change)
            check_legal(now, had_stable=had_stable)


@given(VERSIONS)
def test_an_interrupted_promotion_is_completed_by_the_next_one(version: int) -> None:
    now = model(State.ACTIVE, State.TESTING, State.TESTING, State.TESTING, stable=1, canary=2)
    plan = rules.promote(now, version)
    for stop in range(len(plan.changes)):
        resumed = after(now, *plan.changes[:stop])
        assert after(resumed, *rules.promote(resumed, version).changes) == after(now, *plan.changes)


def test_promotion_makes_a_tested_version_stable_and_the_former_one_previous() -> None:
    before = model(State.ACTIVE, State.TESTING, stable=1, canary=2)
    now = after(before, *rules.promote(before, 2).changes)
    assert now.aliases == {STABLE: 2, PREVIOUS: 1}
    assert [each.state for each in now.versions] == [State.ACTIVE, State.ACTIVE]


def test_promoting_the_stable_version_changes_nothing() -> None:
    assert rules.promote(model(State.ACTIVE, stable=1), 1).changes == ()


def test_rollback_goes_back_once() -> None:
    before = model(State.ACTIVE, State.ACTIVE, stable=2, previous=1)
    now = after(before, *rules.rollback(before).changes)
    assert now.aliases == {STABLE: 1}
    with pytest.raises(RegistryError, match="has no previous version to go back to"):
        rules.rollback(now)


@pytest.mark.parametrize(
    ("step", "before", "said"),
    [
        (lambda m: rules.promote(m, 2), model(State.ACTIVE, State.ARCHIVED, stable=1), "version 2 is ARCHIVED"),
        (lambda m: rules.promote(m, 7), model(State.ACTIVE, stable=1), r"version 7 is not registered \(registered: 1\)"),
        (lambda m: rules.archive(m, 1), model(State.ACTIVE, stable=1), "version 1 is stable"),
        (lambda m: rules.archive(m, 7), model(State.ACTIVE, stable=1), "version 7 is not registered"),
        (lambda m: rules.restore(m, 1), model(State.ACTIVE, stable=1), "is ACTIVE and cannot become TESTING"),
        (lambda m: rules.restore(m, 1), model(State.TESTING), "is TESTING and cannot become TESTING"),
        (lambda m: rules.canary(m, 1), model(State.ARCHIVED), "is ARCHIVED: it may get no traffic"),
        (lambda m: rules.canary(m, 1), model(State.ACTIVE, stable=1), "is stable already"),
        (rules.rollback, model(State.ACTIVE, stable=1), "no previous version"),
        (rules.rollback, model(State.ACTIVE, State.ACTIVE, stable=1, previous=1), "no previous version"),
        (rules.rollback, model(State.ARCHIVED, State.ACTIVE, stable=2, previous=1), "version 1, alias previous, is ARCHIVED"),
    ],
)
def test_a_step_that_is_not_allowed_is_refused_with_the_reason_and_the_way_out(step, before: RegisteredModel, said: str) -> None:
    with pytest.raises(RegistryError, match=said) as refused:
        step(before)
    assert refused.value.hint


def test_an_archived_version_has_no_alias_left() -> None:
    before = model(State.ACTIVE, State.ACTIVE, State.TESTING, stable=1, previous=2, canary=3)
    for version in (2, 3):
        before = after(before, *rules.archive(before, version).changes)
    assert before.aliases == {STABLE: 1}


def test_registering_again_changes_nothing_and_other_content_is_refused() -> None:
    before = model(State.ACTIVE, stable=1)
    assert rules.register(before, record(1)).changes == ()
    with pytest.raises(RegistryError, match=r"is registered with artefact 0+1, this one is f+") as refused:
        rules.register(before, record(1, artefact_sha256="f" * 64))
    assert "new version in model.yaml" in refused.value.hint


def test_registering_again_renews_what_was_measured_and_never_the_state() -> None:
    before = after(model(), Create(record(1, state=State.ACTIVE, metrics=MetricsSpec(accuracy=0.9, p50_ms=4.0))))
    [change] = rules.register(before, record(1, metrics=MetricsSpec(p50_ms=3.0))).changes
    assert isinstance(change, Describe)
    assert (change.record.metrics, change.record.state) == (MetricsSpec(accuracy=0.9, p50_ms=3.0), State.ACTIVE)
