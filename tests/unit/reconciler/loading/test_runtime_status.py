"""What runtime decides of a workspace stays whatever is committed, and is recovered as it was, with its time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.loadedfleet import A, LoadedFleet, Object, configmap
from support.recoveries import Another, assert_recovers, recover

from apiserver.model import clock, conditions
from apiserver.model.conditions import condition
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.storage.protocol import Store
from reconciler.controllers import fleetcondition
from reconciler.controllers.fleetcondition import Trouble
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.shown import Shown
from reconciler.plan import residue
from reconciler.plan.computed import FLEET_FOLLOWED

LATER = "2026-05-05T00:00:00Z"
QUOTA = condition("QuotaFits", False, "TooMuch", "too much", at=LATER)


def loader(fleet: LoadedFleet, store: Store) -> Loader:
    return Loader(store, fleet.mirror.repositories, Identities(fleet.keys / "identities"), fleet.secrets.of)


def keys(fleet: LoadedFleet, path: str) -> list[Key]:
    """Where the two objects of a workspace stand."""
    parent, _, name = path.rpartition(":")
    return [
        Key(LOGICAL_CLUSTERS, fleet.record(path).cluster, "", "cluster"),
        Key(WORKSPACES, fleet.record(parent).cluster, "", name),
    ]


def decide(obj: Object) -> None:
    obj["status"] |= {"initializers": [], "conditions": conditions.merged(obj["status"]["conditions"], [QUOTA])}
    obj["metadata"]["finalizers"] = ["example.io/wait"]


def follow(fleet: LoadedFleet) -> Object:
    found = fleet.get("root", LOGICAL_CLUSTERS, "cluster", "")
    return fleet.condition(found, FLEET_FOLLOWED)


def test_that_what_every_workspace_has_leaves_none_is_seen_at_a_glance(fleet: LoadedFleet) -> None:
    """As it is stored: there is one for each workspace, and none is decoded to be recorded."""
    every = {(LOGICAL_CLUSTERS, "cluster"), ("namespaces", "default")}
    found = [each for each in fleet.everything().items() if (each[0].resource, each[0].name) in every]
    assert {(key.resource, key.name) for key, _ in found} == every
    assert all(residue.is_none(key, value) for key, value in found)


@pytest.mark.parametrize("number", [0, 1])
def test_it_stays_and_is_recovered(fleet: LoadedFleet, another: Another, number: int) -> None:
    key = keys(fleet, "root:a")[number]
    fleet.update(key, decide)
    assert_recovers(fleet, another)
    fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    fleet.commit({f"{A}/bad.yaml": "kind: ["})
    new = assert_recovers(fleet, another, "held")
    fleet.commit({f"{A}/bad.yaml": None})
    new = assert_recovers(fleet, another, "mended")
    for each in (fleet, new):
        found = each.get("root:a" if number == 0 else "root", key.resource, key.name, "")
        assert found["status"]["initializers"] == []
        assert QUOTA in found["status"]["conditions"]


def test_it_is_recorded_of_a_workspace_that_nothing_else_happened_to(fleet: LoadedFleet, another: Another) -> None:
    before = fleet.publish()
    assert fleet.writer().flush() is None
    fleet.update(keys(fleet, "root:a")[0], decide)
    assert fleet.publish() != before
    assert fleet.residue("root:a", LOGICAL_CLUSTERS, "cluster", "") == {
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {"name": "cluster", "finalizers": ["example.io/wait"]},
        "status": {"initializers": [], "conditions": [QUOTA]},
    }
    fleet.update(keys(fleet, "root:a")[0], lambda obj: obj["status"].pop("initializers"))
    assert_recovers(fleet, another)


def test_how_the_fleet_is_followed_is_recovered_with_its_time(
    fleet: LoadedFleet, another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fleet.publish()
    fleetcondition.show(fleet.store)
    assert fleet.publish() == before, "that it always was goes without saying"
    monkeypatch.setattr(clock, "now", lambda: LATER)
    fleetcondition.tell(fleet.store, Trouble.HELD, "commit 1 is held")
    fleet.publish()
    new = recover(fleet, another)
    assert follow(new) == {**follow(fleet), "message": ""}
    monkeypatch.setattr(clock, "now", lambda: "2026-06-06T00:00:00Z")
    fleetcondition.tell(new.store, Trouble.HELD, "commit 1 is held")
    assert follow(new) == follow(fleet)
    assert follow(new)["lastTransitionTime"] == LATER
    fleetcondition.tell(fleet.store, Trouble.HELD)
    fleet.publish()
    other = recover(fleet, another, "other")
    fleetcondition.show(other.store)
    assert follow(other) == follow(fleet)
    assert (follow(other)["status"], follow(other)["lastTransitionTime"]) == ("True", "2026-06-06T00:00:00Z")


def test_a_text_alone_is_not_recorded(fleet: LoadedFleet) -> None:
    """Each record would have the source refuse another one, in other words."""
    fleetcondition.tell(fleet.store, Trouble.STATUS_BRANCH_REFUSED, "takes no 1")
    fleet.publish()
    fleetcondition.tell(fleet.store, Trouble.STATUS_BRANCH_REFUSED, "takes no 2")
    assert fleet.writer().flush() is None


def test_an_observer_speaks_for_itself(fleet: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    fleet.publish()
    other = another(fleet, "observer", keys=fleet.keys)
    shown = Shown(other.store, other.mirror.repository, lambda store: loader(other, store))
    recorded = other.recorded()
    assert recorded is not None
    shown.begin(recorded, "them/1")
    fleetcondition.tell(other.store, Trouble.OBSERVING, "another server holds this fleet")
    before = follow(other)
    fleetcondition.tell(fleet.store, Trouble.HELD, "commit 1 is held")
    fleet.update(keys(fleet, "root:a")[0], decide)
    fleet.publish()
    recorded = other.recorded()
    assert recorded is not None
    assert "root" in shown.follow(recorded, "them/1")
    assert follow(other) == before
    assert other.get("root:a", LOGICAL_CLUSTERS, "cluster", "")["status"]["initializers"] == []
