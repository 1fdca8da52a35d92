"""From a sync target to a namespace: the loops together, over a real store."""

from __future__ import annotations

from typing import Any

from support.countedstore import CountedStore
from support.targetloops import EAST, PLACEMENT, WEST, Loops, decided, declare

from apiserver.model import conditions
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.marks import LEAVING
from apiserver.registry.objects import Objects
from reconciler.controllers.bindings import NamespaceRole
from reconciler.controllers.entry import Entry
from reconciler.plan.placement import Sight


def test_from_target_to_namespace(fleet: Any, loops: Loops, eventually: Any) -> None:
    key = declare(fleet, "west")
    loops.gate.clear()
    loops.start()
    eventually(lambda: decided(fleet, key) == WEST)
    assert loops.bindings.roles("shop0", "web") == {}, "not durable yet"
    loops.gate.set()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    assert int(fleet.get(key)["metadata"]["resourceVersion"]) in loops.durable
    target = fleet.key("synctargets", "infra0", "west")
    eventually(lambda: "syncedResources" in (fleet.get(target).get("status") or {}))
    target = fleet.get(target)
    assert conditions.is_true(target["status"]["conditions"], "Ready")
    assert [r["resource"] for r in target["status"]["syncedResources"]] == [
        "configmaps",
        "persistentvolumeclaims",
        "deployments",
    ]
    eventually(lambda: loops.available("infra0", "aws") == 1)
    status = fleet.get(key)["status"]
    assert (status["phase"], status["selectedLocation"]["locationName"]) == ("Bound", "aws")
    namespace = fleet.key("namespaces", "shop0", "web")
    eventually(
        lambda: conditions.is_true(fleet.get(namespace).get("status", {}).get("conditions"), "NamespaceScheduled")
    )
    assert (WEST, True) in loops.told
    eventually(lambda: loops.beats_without_a_write(eventually), what="heartbeats are not written")


def test_failover_after_the_tolerance(fleet: Any, quick: Loops, eventually: Any) -> None:
    loops = quick
    key = declare(fleet, "east", "west")
    loops.start()
    first = eventually(lambda: decided(fleet, key))
    name, other = ("west", EAST) if first == WEST else ("east", WEST)
    loops.clusters[name].dead = True
    eventually(lambda: decided(fleet, key) == other)
    assert fleet.get(key)["metadata"]["annotations"][LEAVING] == first
    eventually(
        lambda: loops.bindings.roles("shop0", "web") == {other: NamespaceRole.HERE, first: NamespaceRole.LEAVING}
    )
    loops.placements.left(key, first)
    eventually(lambda: loops.bindings.roles("shop0", "web") == {other: NamespaceRole.HERE})


def test_nothing_is_decided_before_the_fleet_is_loaded(fleet: Any, loops: Loops, eventually: Any) -> None:
    fleet.loaded(False)
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: loops.heartbeats.seen(WEST).sight.value == "answers")
    assert decided(fleet, key) == ""
    fleet.loaded(True)
    eventually(lambda: decided(fleet, key) == WEST)


def test_a_location_workspace_that_appears_later(fleet: Any, loops: Loops, eventually: Any) -> None:
    fleet.put("namespaces", "shop0", "web", labels={"app": "foo"})
    spec = {"locationSelectors": [{}], "namespaceSelector": {}, "locationWorkspace": "root:later"}
    key = fleet.put("placements", "shop0", "prod", spec=spec)
    loops.start()
    eventually(lambda: "may use no Location of root:later" in str(fleet.get(key).get("status")))
    fleet.admit("later0", ("Group", "system:workspaces"))
    fleet.put("synctargets", "later0", "t", spec={})
    fleet.put("locations", "later0", "l", spec={"instanceSelector": {}})
    fleet.workspace("root:later", "later0")
    eventually(lambda: decided(fleet, key) == sync_target_key("later0", "t"))


def test_a_placement_deleted_before_its_decision_is_durable_binds_nothing(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    first = declare(fleet, "west")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    fleet.delete(first)
    eventually(lambda: loops.bindings.standings("shop0") == {})
    loops.gate.clear()
    loops.waiting.clear()
    second = fleet.put("placements", "shop0", "again", spec={**PLACEMENT, "locationWorkspace": "root:infra"})
    eventually(loops.waiting.is_set)
    assert decided(fleet, second) == WEST
    fleet.delete(second)
    eventually(lambda: loops.feed.reached == fleet.store.revision())
    loops.gate.set()
    eventually(lambda: not loops.busy())
    assert loops.bindings.standings("shop0") == {}


def test_a_look_before_the_event_of_the_deletion_keeps_the_reason(fleet: Any, loops: Loops, eventually: Any) -> None:
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    loops.feed.stop()
    at = fleet.store.revision()
    fleet.delete(key)
    loops.placements.look(key)
    eventually(lambda: not loops.busy())
    late = [Entry(change) for change in fleet.store.changes(at) if change.key == key]
    assert [list(loops.placements.decisions.keys_of(entry)) for entry in late] == [[]]
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.WITHDRAWN})


def test_a_deleted_placement_withdraws_and_a_relabelled_namespace_does_not(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    fleet.put("namespaces", "shop0", "web", labels={})
    eventually(lambda: loops.bindings.roles("shop0", "web") == {})
    fleet.put("namespaces", "shop0", "web", labels={"app": "foo"})
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    fleet.delete(key)
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.WITHDRAWN})


def test_a_location_is_for_those_who_may_use_it_and_for_its_own_workspace(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    fleet.admit("infra0")
    shops = declare(fleet, "west")
    absent = fleet.put("placements", "shop0", "absent", spec={**PLACEMENT, "locationWorkspace": "root:infrb"})
    fleet.put("namespaces", "infra0", "own", labels={"app": "foo"})
    own = fleet.put("placements", "infra0", "own", spec=PLACEMENT)
    loops.start()
    eventually(lambda: decided(fleet, own) == WEST)

    def told(key: Key) -> str:
        found = (fleet.get(key).get("status") or {}).get("conditions") or ()
        return str([(c["type"], c.get("reason"), c.get("message")) for c in found])

    eventually(lambda: "LocationNotFound" in told(shops) and "LocationNotFound" in told(absent))
    assert told(shops).replace("root:infra", "_") == told(absent).replace("root:infrb", "_"), "one text for both cases"
    assert loops.bindings.roles("shop0", "web") == {}
    fleet.admit("infra0", ("User", "system:workspace:root:shop"), names=["aws"])
    eventually(lambda: decided(fleet, shops) == WEST)


def test_losing_use_removes_nothing_and_lets_nothing_in(fleet: Any, loops: Loops, eventually: Any) -> None:
    first = declare(fleet, "east", "west")
    loops.start()
    at = eventually(lambda: decided(fleet, first))
    eventually(lambda: loops.bindings.roles("shop0", "web") == {at: NamespaceRole.HERE})
    fleet.admit("infra0", ("User", "system:workspace:root:other"))
    eventually(lambda: "may not use that Location any more" in str(fleet.get(first)["status"]))
    second = fleet.put("placements", "shop0", "again", spec={**PLACEMENT, "locationWorkspace": "root:infra"})
    eventually(lambda: "LocationNotFound" in str(fleet.get(second).get("status")))
    assert (decided(fleet, first), decided(fleet, second)) == (at, "")
    assert loops.bindings.roles("shop0", "web") == {at: NamespaceRole.HERE}
    fleet.admit("infra0", ("Group", "system:workspaces:root"))
    eventually(lambda: decided(fleet, second))
    eventually(lambda: "may not use" not in str(fleet.get(first)["status"]))


def test_a_namespace_that_holds_state_stays_for_what_others_do_and_goes_for_its_own_edit(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    key = declare(fleet, "west")
    claim = fleet.put("persistentvolumeclaims", "shop0", "data", "web")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws"}, spec={})
    eventually(lambda: loops.available("infra0", "aws") == 2)

    def held() -> str:
        found = conditions.get(fleet.get(key)["status"]["conditions"], "Scheduled") or {}
        return str(found["message"]) if found["reason"] == "HoldsState" else ""

    # Somebody's edit of a label, a drain, the end of the SyncTarget itself.
    fleet.put(
        "locations", "infra0", "aws", labels={"cloud": "aws"}, spec={"instanceSelector": {"matchLabels": {"n": "e"}}}
    )
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws", "n": "e"}, spec={})
    eventually(lambda: "no selected Location holds sync target root:infra:west" in held())
    west = fleet.put("synctargets", "infra0", "west", labels={"n": "e"}, spec={"evictAfter": "2020-01-01T00:00:00Z"})
    eventually(lambda: "is being drained" in held())
    fleet.delete(west)
    eventually(lambda: "is not declared any more" in held())
    assert decided(fleet, key) == WEST
    assert loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE}

    # A restart knows it, too.
    again = Loops(fleet)
    loops.stop()
    again.start()
    try:
        eventually(lambda: again.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
        eventually(lambda: again.heartbeats.seen(EAST).sight is Sight.ANSWERS)
        eventually(lambda: not again.busy())
        assert decided(fleet, key) == WEST
        # Without its state nothing holds it.
        fleet.delete(claim)
        eventually(lambda: decided(fleet, key) == EAST)
    finally:
        again.stop()


def test_an_edit_of_its_own_moves_a_namespace_with_state(fleet: Any, loops: Loops, eventually: Any) -> None:
    key = declare(fleet, "west")
    fleet.put("persistentvolumeclaims", "shop0", "data", "web")
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "gcp"}, spec={})
    west = {"instanceSelector": {"matchLabels": {"cloud": "aws"}}}
    fleet.put("locations", "infra0", "aws", labels={"cloud": "aws"}, spec=west)
    east = {"instanceSelector": {"matchLabels": {"cloud": "gcp"}}}
    fleet.put("locations", "infra0", "gcp", labels={"cloud": "gcp"}, spec=east)
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    edit = {**PLACEMENT, "locationSelectors": [{"matchLabels": {"cloud": "gcp"}}], "locationWorkspace": "root:infra"}
    fleet.put("placements", "shop0", "prod", spec=edit)
    eventually(lambda: loops.bindings.roles("shop0", "web") == {EAST: NamespaceRole.HERE, WEST: NamespaceRole.LEAVING})
    assert decided(fleet, key) == EAST


def test_a_start_with_nothing_new_looks_at_no_placement_and_writes_nothing(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    """What targets answer is asked anew; where everything runs is known."""
    declare(fleet, "west")
    for number in range(30):
        fleet.workspace(f"root:w{number}", f"w{number}")
        fleet.put("namespaces", f"w{number}", "web", labels={"app": "foo"})
        fleet.put("placements", f"w{number}", "prod", spec={**PLACEMENT, "locationWorkspace": "root:infra"})
    loops.start()
    eventually(lambda: all(loops.bindings.roles(f"w{n}", "web") == {WEST: NamespaceRole.HERE} for n in range(30)), 30)
    eventually(lambda: all(manager.idle for manager in loops.managers), 30)
    loops.stop()
    revision = fleet.store.revision()
    counted: Any = CountedStore(fleet.store)
    again = Loops(Counted(fleet, counted))
    again.start()
    try:
        eventually(lambda: again.heartbeats.seen(WEST).sight is Sight.ANSWERS)
        eventually(lambda: all(manager.idle for manager in again.managers))
        assert set(counted.rows) <= {"synctargets.workload.kcp.io", "locations.scheduling.kcp.io"}
        assert again.bindings.roles("w7", "web") == {WEST: NamespaceRole.HERE}
        assert fleet.store.revision() == revision
    finally:
        again.stop()


class Counted:
    """A fleet whose reads are counted."""

    def __init__(self, fleet: Any, store: Any) -> None:
        self.store, self.objects = store, Objects(store)
