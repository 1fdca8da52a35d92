"""A recovery serves what was served, and a verdict does not depend on the way to it: over generated histories.

After whatever happened the running server is held against a recovery from what is recorded now, against one from what
was recorded some time before (which follows the branch from there), and, where nothing is held, kept or contested,
against a first load of the head.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.happenings import EVENTS, OF_ONE, PUSHES, Happening, History
from support.loadedfleet import LoadedFleet
from support.recoveries import assert_same
from support.turns import assert_nothing_turned

from apiserver.model import marks
from apiserver.registry import tree
from apiserver.registry.indexes import INACTIVE
from reconciler.loading.heads import BranchSettings

HISTORIES = st.lists(
    st.tuples(st.sampled_from([*PUSHES, *EVENTS]), st.integers(0, 23), st.booleans()), min_size=1, max_size=14
)


DEATHS = ("die", "record and die")
"""What one server alone served a part of: it knows names of exports that others never heard of."""


class Fleets:
    """Stores over one repository, closed at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[LoadedFleet] = [LoadedFleet(folder / "fleet")]

    def another(self) -> LoadedFleet:
        first = self.made[0]
        self.made.append(LoadedFleet(self.folder / f"n{len(self.made)}", repo=first.repo, keys=first.keys))
        return self.made[-1]


@contextmanager
def fleets(factory: pytest.TempPathFactory) -> Iterator[Fleets]:
    found = Fleets(factory.mktemp("histories"))
    try:
        yield found
    finally:
        for each in found.made:
            each.close()


def happened(found: Fleets, history: History) -> Happening:
    """All of a history, loaded to its end."""
    happening = Happening(found.made[0])
    happening.begin()
    for name, number, load in history:
        happening.happen(name, number, load=load)
    happening.fleet.load()
    return happening


def recovered(found: Fleets, happening: Happening) -> LoadedFleet:
    """A server that has the repository alone."""
    new = found.another()
    new.loader = new.new_loader(BranchSettings(rewrites=happening.rewrites))
    recorded = new.recorded()
    assert recorded is not None
    new.load(recorded)
    return new


def agree(new: LoadedFleet, old: LoadedFleet, *, at: bool = True) -> None:
    assert_same(new, old, at=at)
    for name in ("commit", "error", "claims", "kept", "writes"):
        assert getattr(new.fleet(), name) == getattr(old.fleet(), name), name


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
@example(history=[("die", 3, False), ("publish", 0, False)])
@example(history=[("die", 380, False), ("back", 1, False), ("publish", 0, False)])
@example(history=[("die", 380, False), ("rewrite", 1, False), ("publish", 0, False)])
@example(history=[("add many", 5, True), ("remove many", 0, True), ("limits", 0, True)])
@example(history=[("move", 0, True), ("allow", 0, False), ("use defined", 0, False), ("put back", 8, False)])
@example(history=[(name, 0, False) for name in ("remove", "relocate", "change", "put back", "rename")])
@example(
    history=[
        ("remove", 0, True),
        ("relocate", 0, True),
        ("change", 6, True),
        ("put back", 0, True),
        ("rename", 5, False),
    ]
)
def test_the_running_server_a_recovery_and_a_first_load_agree(
    tmp_path_factory: pytest.TempPathFactory, history: History
) -> None:
    with fleets(tmp_path_factory) as found:
        happening = happened(found, history)
        old = happening.fleet
        if not happening.touched and not happening.left:
            agree(recovered(found, happening), old, at=False)
        old.publish()
        new = recovered(found, happening)
        agree(new, old)
        assert new.writer().flush() is None
        if is_plain(old):
            first = found.another()
            first.load()
            assert first.held() == {}
            assert_nothing_turned(first)
            assert plain(first) == plain(old, untouched=happening.ever_touched)


ENDS = (
    *("finalizer", "let go", "allow", "restart", "publish", "die"),
    *("unbind", "bind", "bind twice", "use", "define", "define no more", "use defined"),
    *("withdraw", "provide", "provide beside", "turn", "break", "mend", "nothing"),
    *("type", "of the type", "terminate"),
    *("remove", "put back", "put all back", "move", "back", "rewrite", "record in a load", "record and die"),
)


TAKEN_AWAY: list[History] = [
    [("finalizer", 1, True), ("unbind", 1, True), ("allow", 1, True)],
    [("finalizer", 2, True), ("define no more", 1, True), ("allow", 1, True)],
    [("finalizer", 1, True), ("remove", 1, True), ("allow", 1, True)],
    [("finalizer", 2, True), ("remove", 2, True), ("allow", 1, True)],
    [("type", 1, True), ("of the type", 1, True), ("remove", 3, True), ("allow", 1, True)],
]
"""A binding, a definition, workspaces; one of these has a terminator."""


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@example(before=TAKEN_AWAY[0], history=[("bind", 0, True), ("use", 1, True)])
@example(before=TAKEN_AWAY[0], history=[("bind", 0, False), ("use", 1, False)])
@example(before=TAKEN_AWAY[4], history=[("back", 2, False)])
@example(
    before=TAKEN_AWAY[1],
    history=[("put all back", 0, True), ("let go", 0, False), ("define", 1, False)],
)
@given(
    before=st.sampled_from(TAKEN_AWAY),
    history=st.lists(st.tuples(st.sampled_from(ENDS), st.integers(0, 23), st.booleans()), max_size=14),
)
def test_definitions_that_wait_for_their_objects_are_recovered(
    tmp_path_factory: pytest.TempPathFactory, before: History, history: History
) -> None:
    """And when all have let go, nothing is left that waits, and what is served is what the head says."""
    with fleets(tmp_path_factory) as found:
        happening = happened(found, before)
        assert is_leaving(happening.fleet)
        for name, number, load in history:
            happening.happen(name, number, load=load)
        old = happening.fleet
        old.load()
        old.publish()
        agree(recovered(found, happening), old)
        happening.happen("let go", 0)
        assert not [key for key, value in old.everything().items() if b'"treeplane.dev/origin":"removed"' in value]
        assert not is_leaving(old) or old.fleet().kept, "what stays until its removal is allowed is not looked at"
        old.publish()
        agree(recovered(found, happening), old)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES, more=HISTORIES)
@example(history=[("add many", 0, False)], more=[("back", 1, True), ("rewrite", 0, False)])
def test_what_was_recovered_goes_on_as_what_ran_on(
    tmp_path_factory: pytest.TempPathFactory, history: History, more: History
) -> None:
    with fleets(tmp_path_factory) as found:
        happening = happened(found, history)
        happening.fleet.publish()
        new = recovered(found, happening)

        def load_too() -> None:
            new.loader = new.new_loader(BranchSettings(rewrites=happening.rewrites))
            new.load()

        happening.also = load_too
        for name, number, load in more:
            if name not in (*OF_ONE, "publish", "publish beside a load", *DEATHS):
                happening.happen(name, number, load=load)
        happening.load()
        agree(new, happening.fleet, at=False)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES, die=st.booleans(), number=st.integers(0, 953), more=HISTORIES)
@example(history=[("of the type", 1, False)], die=False, number=879, more=[])
@example(history=[("provide", 1, False)], die=False, number=85, more=[])
@example(history=[("of the type", 1, False)], die=False, number=167, more=[("change", 0, False)])
def test_what_is_recorded_in_the_middle_of_a_load_recovers_what_ran_on(
    tmp_path_factory: pytest.TempPathFactory, history: History, die: bool, number: int, more: History
) -> None:
    """Whether the server that recorded it goes on or is killed, and whether its own log or the status commit is what
    the next one has."""
    with fleets(tmp_path_factory) as found:
        happening = happened(found, history)
        left = happening.left
        happening.happen("record and die" if die else "record in a load", number, load=False)
        new = recovered(found, happening)
        happening.load()
        if not left and not happening.touched:
            agree(new, happening.fleet, at=False)
        for name, more_number, load in more[:3]:
            if name not in OF_ONE:
                happening.happen(name, more_number, load=load)
        happening.load()
        happening.fleet.publish()
        agree(recovered(found, happening), happening.fleet)


def is_leaving(fleet: LoadedFleet) -> bool:
    """Whether anything that a commit took away waits."""
    summaries = (tree.summary(fleet.store, record.path) for record in fleet.records())
    return bool(tree.leaving(fleet.store)) or any(each.get("ending") for each in summaries)


# -- first loads


def is_plain(fleet: LoadedFleet) -> bool:
    """Nothing is held, excused by its past or contested: the head says all."""
    record = fleet.fleet()
    if record.error or record.kept or record.claims or record.commit != fleet.repo.head or fleet.held():
        return False
    if is_leaving(fleet) or fleet.store.indexed(INACTIVE):
        return False
    summaries = [tree.summary(fleet.store, r.path) for r in fleet.records()]
    excused = ("bindings", "waiting", "ending", "brought", "defaults", "shard", "initializers", "terminators")
    return not any(s.get(name) for s in summaries for name in excused)


_OWN = re.compile(
    r'"(uid|UID|creationTimestamp|lastTransitionTime|resourceVersion|treeplane.dev/source-commit)":"[^"]*"'
)


def plain(fleet: LoadedFleet, *, untouched: bool = False) -> dict[str, Any]:
    """Everything by path, without what tells one origin from another. `untouched`: without what controllers wrote, and
    what their finalizers keep."""
    paths = {r.cluster: r.path for r in fleet.records()}
    out = {}
    for key, value in fleet.everything().items():
        text = _OWN.sub(r'"\1":""', orjson.dumps(orjson.loads(value), option=orjson.OPT_SORT_KEYS).decode())
        text = re.sub(r'"generation":\d+,?', "", text)
        for cluster, path in paths.items():
            text = text.replace(f'"{cluster}"', f'"{path}"')
        obj = orjson.loads(text)
        if untouched and "deletionTimestamp" in obj["metadata"]:
            continue
        if untouched:
            obj.pop("status", None) if key.resource.startswith(("widgets", "configmaps", "placements")) else None
            obj["metadata"].pop("finalizers", None)
            obj["metadata"].get("annotations", {}).pop(marks.SYNC_TARGET, None)
        out[f"{key.resource}/{paths[key.cluster]}/{key.namespace}/{key.name}"] = obj
    return out
