"""Which Placements depend on what, and how many there are where, is looked up: nothing of it is held."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest
from support.countedstore import CountedStore

from apiserver.model import marks
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.selectors import EVERYTHING, from_object
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers import bindings, standings
from reconciler.controllers.bindings import Bindings, NamespaceRole
from reconciler.controllers.entry import Entry
from reconciler.controllers.placementindex import PlacementIndex
from reconciler.controllers.standings import Standing, Standings

WEST = sync_target_key("infra0", "west")


@pytest.fixture
def counted(fleet: Any) -> CountedStore:
    return CountedStore(fleet.store)


@pytest.fixture
def index(counted: Any) -> PlacementIndex:
    return PlacementIndex(counted)


def place(fleet: Any, cluster: str, name: str, at: str = "", leaving: str = "", looks: str = "") -> Key:
    key: Key = fleet.put("placements", cluster, name, spec={"locationWorkspace": looks} if looks else {})
    said = {marks.SYNC_TARGET: at, marks.LEAVING: leaving}

    def change(obj: dict[str, Any]) -> dict[str, Any]:
        obj["metadata"]["annotations"] |= {mark: text for mark, text in said.items() if text}
        return obj

    fleet.objects.update(key, change)
    return key


def test_who_depends_on_a_workspace_of_locations_is_found(fleet: Any, index: PlacementIndex) -> None:
    fleet.put("synctargets", "infra0", "west", spec={})
    looks = place(fleet, "shop0", "looks", looks="root:infra")
    own = place(fleet, "infra0", "own")
    runs = place(fleet, "shop0", "runs", at=WEST, looks="root:elsewhere")
    leaves = place(fleet, "shop0", "leaves", leaving=f"other,{WEST}", looks="root:elsewhere")
    place(fleet, "shop0", "other", at="other", looks="root:elsewhere")
    assert set(index.around("infra0")) == {looks, own, runs, leaves}
    assert set(index.looking("root:infra", "infra0")) == {looks, own}
    assert set(index.on(WEST)) == {runs, leaves}
    assert list(index.of("infra0")) == [own]


def test_how_many_a_target_has_follows_the_decisions(fleet: Any, index: PlacementIndex) -> None:
    for number in range(3):
        place(fleet, "shop0", f"p{number}", at=WEST)
    assert index.load([WEST, "other"], "") == {WEST: 3, "other": 0}
    assert index.load([WEST, "other"], WEST) == {WEST: 2, "other": 0}
    fleet.delete(fleet.key("placements", "shop0", "p0"))
    place(fleet, "shop0", "p1", at="other")
    assert index.load([WEST, "other"], "other") == {WEST: 1, "other": 0}


def test_a_look_up_reads_those_concerned_alone(fleet: Any, index: PlacementIndex, counted: CountedStore) -> None:
    def asked() -> Iterable[Iterable[Key]]:
        yield index.around("infra0")
        yield index.looking("root:infra", "infra0")
        yield index.of("infra0")

    assert [list(found) for found in asked()] == [[], [], []]
    assert counted.rows == [], "a fleet without Placements"
    for number in range(200):
        place(fleet, f"w{number}", "p", at="other", looks="root:elsewhere")
    assert [list(found) for found in asked()] == [[], [], []]
    assert counted.rows == []
    mine = place(fleet, "infra0", "p")
    assert [list(found) for found in asked()] == [[mine]] * 3
    assert counted.rows == ["placements.scheduling.kcp.io"] * 3
    assert set(vars(index)) == {"_store"}, "nothing is held"


def test_a_decision_that_is_handed_on_comes_back_as_it_was() -> None:
    selectors = ({}, None, {"matchLabels": {"a": "b"}}, {"matchExpressions": [{"key": "k", "operator": "Exists"}]})
    for selector in selectors:
        standing = Standing(WEST, ("x", "y"), from_object(selector), nothing_new=True)
        assert Standing.decode(standing.encode()) == standing


def test_what_is_handed_on_is_held_for_few_workspaces(fleet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standings, "_KEPT", 4)
    found, standing = Standings(fleet.store), Standing(WEST)
    assert found.of("w0") == {}
    for number in range(20):
        found.put(f"w{number}", "p", standing)
    assert [found.of(f"w{number}") for number in range(21)] == [{"p": standing}] * 20 + [{}]
    assert len(found._known) <= 4
    again = Standings(fleet.store)
    assert (again.of("w7"), len(list(again.all()))) == ({"p": standing}, 20)
    again.put("w7", "p", None)
    assert again.of("w7") == {}


def test_what_was_withdrawn_is_remembered_within_bounds(fleet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "_WITHDRAWN", 5)
    made = Bindings(fleet.objects)
    every = Standing(WEST, (), EVERYTHING)
    for number in range(20):
        fleet.put("namespaces", f"w{number}", "web")
        made.set(f"w{number}", "p", every)
        assert made.roles(f"w{number}", "web") == {WEST: NamespaceRole.HERE}
        made.withdraw(f"w{number}", "p", explained=True)
    assert len(made._withdrawn) == 5
    assert made.roles("w19", "web") == {WEST: NamespaceRole.WITHDRAWN}
    assert made.roles("w0", "web") == {}


def test_a_fleet_without_placements_asks_the_store_nothing(fleet: Any) -> None:
    made = Bindings(fleet.objects)
    made.begin()
    asked: list[str] = []

    class Asked:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(fleet.store, name)

    made.bound("shop0"), made.roles("shop0", "web")  # whether there are any decisions is asked once
    made._objects = Objects(cast(Store, Asked()))
    made._standings._store = cast(Store, Asked())
    at = fleet.store.revision()
    fleet.put("namespaces", "shop0", "web")
    for change in fleet.store.changes(at):
        assert list(made.keys_of(Entry(change))) == []
    assert (made.bound("shop0"), made.roles("shop0", "web"), asked) == (False, {}, [])
    placement = place(fleet, "shop0", "prod")
    made.keys_of(Entry(next(c for c in fleet.store.changes(at) if c.key == placement)))
    assert made.bound("shop0")
