"""The ways of working are lists of phases, and nothing that a phase asks about."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.storage.protocol import Store
from reconciler.loading import ways
from reconciler.loading.case import Case, Coming
from reconciler.loading.handover import Filling, KeepingBack
from reconciler.loading.phases import (
    appearing,
    asking,
    counting,
    declaring,
    following,
    gathering,
    holding,
    identified,
    judgement,
    kinds,
    merging,
    mounting,
    publishing,
    scheduling,
    typed,
)
from reconciler.loading.step import StepTarget
from reconciler.loading.ways import COMMIT, FIRST_LOAD, PROPOSAL, RECHECK, RECOVERY, Way

WAYS = [FIRST_LOAD, COMMIT, RECOVERY, RECHECK, PROPOSAL]
ROOMS = [appearing, following, gathering, typed, identified, scheduling, mounting, kinds, declaring]
ROOMS += [counting, asking, holding, merging, publishing]
"""In the order in which a workspace passes them."""


def lists() -> list[tuple[str, Coming, ways.Phases]]:
    return [(way.name, coming, phases) for way in WAYS for coming, phases in way.lists.items()]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_has_a_list_for_each_workspace_that_may_come(way: Way) -> None:
    assert way.lists.keys() == set(Coming)


@pytest.mark.parametrize(("way", "coming", "phases"), lists())
def test_every_list_gathers_finds_kinds_declares_merges_and_publishes_in_this_order(
    way: str, coming: Coming, phases: ways.Phases
) -> None:
    passed = [ROOMS.index(inspect.getmodule(phase)) for phase in phases]  # type: ignore[arg-type]
    assert passed == sorted(passed), (way, coming)
    assert {2, 3, 4, 5, 6, 7, 8, 11, 12, 13} <= set(passed), "a bad one is held in every way"
    assert (0 in passed) == (gathering.look not in phases), "what is there already is like no other"
    assert (1 in passed) == (coming is Coming.PROVIDED), "what a workspace declares counts in every other case"


def test_only_what_may_stand_in_the_store_is_looked_for() -> None:
    blind = {(way, coming) for way, coming, phases in lists() if gathering.look not in phases}
    assert blind == {(way.name, Coming.NEW) for way in WAYS} | {("first load", Coming.RETURNING)}


def test_nothing_is_asked_about_where_nothing_is_served_yet() -> None:
    asked = {coming for _, coming, phases in lists() if asking.ask_for_losses in phases}
    assert asked == {Coming.CHANGED, Coming.WHOLE, Coming.PROVIDED}


def test_neither_a_case_nor_a_step_has_a_flag() -> None:
    """Whether anything is so is said by the list that is chosen."""
    for kind in (
        Case.__annotations__,
        {f.name: f.type for f in fields(StepTarget)},
        {f.name: f.type for f in fields(judgement.Grounds)},
    ):
        assert [name for name, said in kind.items() if str(said) == "bool"] == []


def test_no_phase_asks_whether_anything_is_recorded_of_a_workspace() -> None:
    """Those that put back have it; the others are not in the lists of one that returns."""
    for room in (following, gathering, typed, identified, kinds, declaring, asking, merging, publishing):
        assert "recorded is None" not in inspect.getsource(room), room.__name__


def test_how_a_way_reaches_the_store() -> None:
    assert (FIRST_LOAD.handover, PROPOSAL.handover) == (Filling, KeepingBack)


def test_a_commit_of_a_fleet_passes_the_lists_by_how_each_workspace_comes(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[tuple[str, Coming]] = []
    real = Way.phases
    monkeypatch.setattr(Way, "phases", lambda way, coming: passed.append((way.name, coming)) or real(way, coming))
    fleet.commit({f"{A}/app.yaml": configmap(a="c"), "workspaces/root/c/workspace.yaml": ""})
    assert passed == [("commit", Coming.CHANGED), ("commit", Coming.NEW)]
    passed.clear()
    fleet.commit({f"{A}/bad.yaml": "kind: Nothing\napiVersion: v1\nmetadata: {name: x}\n"})
    assert passed == [("commit", Coming.CHANGED), ("commit", Coming.WHOLE)], "all errors, with their lines"
    passed.clear()
    fleet.recheck(["root:b"])
    assert passed == [("recheck", Coming.WHOLE)]


def test_a_store_that_is_filled_is_not_written_to_in_the_log(
    empty: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Store = empty.store
    monkeypatch.setattr(store, "write", lambda *ops: pytest.fail(f"{ops}") if len(ops) > 1 else store.fill(*ops))
    empty.begin()
