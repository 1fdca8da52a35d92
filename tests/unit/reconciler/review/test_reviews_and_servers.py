"""What a review foresees is what a server does then, whatever came before, and a part of a fleet says what all of it
says."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from support.happenings import EVENTS, PUSHES, Happening, History
from support.loadedfleet import A, LoadedFleet

from apiserver.model.commits import own
from apiserver.model.origins import file_of
from apiserver.registry import tree
from reconciler.commands.diff import compare
from reconciler.loading.changeset import together
from reconciler.loading.inpart import Everybody
from reconciler.review import foresight
from reconciler.review.objects import Versions, difference, where, written
from reconciler.review.result import ChangeReview

HISTORIES = st.lists(
    st.tuples(st.sampled_from([*PUSHES, *EVENTS]), st.integers(0, 23), st.booleans()), min_size=0, max_size=8
)
CHANGES = st.lists(st.tuples(st.sampled_from([*PUSHES, "allow"]), st.integers(0, 23)), min_size=1, max_size=3)

ITSELF = ("Workspace", "LogicalCluster")
"""What of a workspace no other object says: told of it, or not."""
Told = dict[str, str]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=HISTORIES, changes=CHANGES)
@example(history=[("move", 0, False)], changes=[("type", 0)])
@example(history=[("break", 1, False)], changes=[("rename", 0), ("of a type that is not there", 0)])
def test_what_is_foreseen_is_what_happens(
    tmp_path_factory: pytest.TempPathFactory, history: History, changes: list[tuple[str, int]]
) -> None:
    """From a status branch, with some commits on top in one step."""
    fleet = LoadedFleet(tmp_path_factory.mktemp("review") / "fleet")
    try:
        happening = Happening(fleet)
        happening.begin()
        for name, number, load in history:
            happening.happen(name, number, load=load)
        fleet.load()
        fleet.publish()
        base = fleet.repo.head
        assume(fleet.fleet().commit.id == base)  # not where the branch as a whole is held
        for name, number in changes:
            happening.happen(name, number, load=False)
        assert_foreseen(fleet, base)
    finally:
        fleet.close()


def assert_foreseen(fleet: LoadedFleet, base: str) -> None:
    head = fleet.repo.head
    part, whole = compare(fleet.repo.path, f"{base}..{head}"), everybody(fleet, f"{base}..{head}")
    assert objects(part) == objects(whole)
    assert held(part) == held(whole)
    assert {path: each.digest for path, each in part.refused.items()} == {
        path: each.digest for path, each in whole.refused.items()
    }
    before, paths, stood = fleet.store.revision(), where(fleet.store), tree.held(fleet.store)
    loaded = fleet.loader.take(own(head))
    assert bool(loaded.problems) == bool(part.problems)
    paths |= where(fleet.store)
    happened = {
        key: pair for key, pair in written(fleet.store, before).items() if file_of(pair.value or {"metadata": {}})
    }
    assert objects(part) == told(happened, paths)
    found = together(loaded.steps).held
    foreseen = {*held(part), *(path for those in part.waiting.values() for path in those)}
    assert foreseen <= {*found}
    assert {path for path in found if path not in stood} <= foreseen


def told(pairs: dict[object, Versions], paths: dict[str, str]) -> Told:
    out: Told = {}
    for key, pair in pairs.items():
        found = difference(key, pair, paths)  # type: ignore[arg-type]
        if found is not None and found.object.kind not in ITSELF:
            out[f"{found.object.workspace} {found.object}"] = str(found.change)
    return out


def objects(review: ChangeReview) -> Told:
    return {
        f"{each.object.workspace} {each.object}": str(each.change)
        for workspace in review.workspaces
        for each in workspace.objects
        if each.object.kind not in ITSELF
    }


def held(review: ChangeReview) -> dict[str, list[str]]:
    return {each.path: sorted(map(str, each.why)) for each in review.workspaces if each.why}


def everybody(fleet: LoadedFleet, asked: str) -> ChangeReview:
    """The same review of all workspaces."""

    def nobody(*_: object) -> None:
        raise Everybody

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(foresight, "judged", nobody)
        return compare(fleet.repo.path, asked)


def test_nothing_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the clone nor beside it."""
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.begin()
    fleet.publish()
    fleet.repo.commit({f"{A}/app.yaml": None})
    stood, scratch = {str(path) for path in fleet.repo.path.rglob("*")}, tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    assert compare(fleet.repo.path, "main~1..main").workspaces
    assert {str(path) for path in fleet.repo.path.rglob("*")} == stood
    assert not list(scratch.iterdir())
    fleet.close()
