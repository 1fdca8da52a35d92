"""The loops together, over a real store, with connections that the test controls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pytest
from support.countedstore import CountedStore

from apiserver.model import clock, conditions
from apiserver.model.conditions import Condition
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.marks import LEAVING, SYNC_TARGET
from apiserver.registry.kinds import KindTable, kubernetes_builtins
from apiserver.registry.objects import Objects
from reconciler.controllers.bindings import Bindings, NamespaceRole
from reconciler.controllers.entry import Entry
from reconciler.controllers.failures import Expected
from reconciler.controllers.feed import Feed
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.locations import Locations
from reconciler.controllers.manager import Manager
from reconciler.controllers.namespaces import Namespaces
from reconciler.controllers.placements import Placements, PlacementWorld
from reconciler.controllers.settings import TargetSettings
from reconciler.controllers.synctargets import SyncTargets
from reconciler.controllers.targets import Cluster, Denied, Kubeconfig, Missing, TargetIndex
from reconciler.controllers.uses import Uses
from reconciler.plan.placement import Sight

WEST, EAST = sync_target_key("infra0", "west"), sync_target_key("infra0", "east")
QUICK = TargetSettings(heartbeat=0.05, again=0.05, threshold=0.3, tolerance=0.3, credentials=0.05)

PLACEMENT = {
    "locationSelectors": [{"matchLabels": {"cloud": "aws"}}],
    "namespaceSelector": {"matchLabels": {"app": "foo"}},
}


class FakeCluster:
    def __init__(self, name: str) -> None:
        self.name, self.dead = name, False
        self.denied: Denied | None = None

    def ping(self) -> None:
        if self.dead:
            raise Expected("connection refused")
        if self.denied is not None:
            raise self.denied

    def served(self) -> Mapping[GroupResource, tuple[str, ...]]:
        served = (GroupResource("apps", "deployments"), GroupResource("", "configmaps"), CLAIMS)
        return dict.fromkeys(served, ("v1",))

    def goes_on(self, kubeconfig: Kubeconfig) -> bool:
        return kubeconfig.data.decode().partition("+")[0] == self.name

    def close(self) -> None: ...


CLAIMS = GroupResource("", "persistentvolumeclaims")


class Claims:
    """The one kind that a workspace serves here."""

    def kinds(self, cluster: str) -> KindTable:
        return KindTable([k for k in kubernetes_builtins().all() if k.group_resource == CLAIMS])


class Ends:
    """What is known of the ends of credentials, as the test says."""

    def __init__(self) -> None:
        self.over: set[str] = set()
        self.near: dict[str, Condition] = {}
        self.renewed: list[str] = []

    def sees(self, key: str, target: dict[str, Any], kubeconfig: Kubeconfig | None) -> None: ...

    def renew(self, key: str, cluster: Cluster) -> None:
        self.renewed.append(key)

    def explained(self, key: str, failure: Expected) -> Expected:
        return Denied("CredentialsEnded", "its token has ended") if key in self.over else failure

    def told(self, key: str) -> Condition | None:
        return self.near.get(key)

    def forget(self, key: str) -> None: ...


class Loops:
    """Everything below the syncers, started."""

    def __init__(self, fleet: Any) -> None:
        self.fleet = fleet
        self.clusters: dict[str, FakeCluster] = {}
        self.missing: set[str] = set()
        self.content: dict[str, str] = {}
        self.lingering: dict[str, str] = {}
        self.ends = Ends()
        self.forgotten: list[tuple[str, ...]] = []
        self.told: list[tuple[str, bool]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()
        self.durable: list[int] = []
        objects = fleet.objects
        self.feed = Feed(fleet.store)
        self.heartbeats = Heartbeats(QUICK.threshold)
        self.index = TargetIndex(objects)
        self.bindings = Bindings(objects)
        uses = Uses(fleet.store)
        world = PlacementWorld(objects, Claims(), self.index, self.heartbeats, self.bindings, uses, self.make_durable)
        self.placements = Placements(world, QUICK)
        self.targets = SyncTargets(
            objects, self.heartbeats, self.credentials, self.connect, lambda _: {}, self.tell, QUICK, self.ends
        )
        self.deciding = [
            Manager(each.name, [each], self.feed)
            for each in (self.placements, self.placements.decisions, self.placements.grants)
        ]
        self.managers = [
            Manager("indexes", [self.index, self.bindings], self.feed),
            *(
                Manager(each.name, [each], self.feed)
                for each in (
                    self.targets,
                    Locations(objects, self.heartbeats),
                    Namespaces(objects, self.bindings, self),
                )
            ),
            *self.deciding,
        ]

    def busy(self) -> bool:
        """Whether anything is being decided or handed on."""
        return any(manager.working for manager in self.deciding)

    def make_durable(self, revision: int) -> None:
        self.waiting.set()
        self.gate.wait()
        self.durable.append(revision)

    def credentials(self, target: dict[str, Any]) -> Kubeconfig | Missing:
        name = target["metadata"]["name"]
        return (
            Missing(f"no Secret for {name}")
            if name in self.missing
            else Kubeconfig(self.content.get(name, name).encode())
        )

    def connect(self, kubeconfig: Kubeconfig) -> Cluster:
        name = kubeconfig.data.decode()
        if name == "exec":
            raise Denied("KubeconfigRefused", "the kubeconfig is refused for `exec`")
        return self.clusters.setdefault(name, FakeCluster(name))

    def linger(self, key: str, cluster: str, namespace: str) -> str:
        return self.lingering.get(key, "")

    def forget(self, cluster: str, namespace: str, keys: Collection[str]) -> None:
        self.forgotten.append((namespace, *sorted(keys)))

    def tell(self, key: str, obj: dict[str, Any] | None, cluster: Cluster | None) -> None:
        self.told.append((key, cluster is not None))

    def start(self) -> None:
        for manager in self.managers:
            manager.start()
        self.feed.start()

    def stop(self) -> None:
        self.gate.set()
        self.feed.stop()
        for manager in self.managers:
            manager.stop()
        self.targets.end()


@pytest.fixture
def loops(fleet: Any) -> Iterator[Loops]:
    made = Loops(fleet)
    yield made
    made.stop()


def declare(fleet: Any, *targets: str) -> Key:
    for name in targets:
        fleet.put("synctargets", "infra0", name, labels={"cloud": "aws"}, spec={})
    fleet.put("locations", "infra0", "aws", labels={"cloud": "aws"}, spec={"instanceSelector": {}})
    fleet.put("namespaces", "shop0", "web", labels={"app": "foo"})
    key: Key = fleet.put("placements", "shop0", "prod", spec={**PLACEMENT, "locationWorkspace": "root:infra"})
    return key


def decided(fleet: Any, key: Key) -> str:
    return str(fleet.get(key)["metadata"]["annotations"].get(SYNC_TARGET, ""))


def test_from_target_to_namespace(fleet: Any, loops: Loops, eventually: Any, written: Callable[[int], Any]) -> None:
    key = declare(fleet, "west")
    loops.gate.clear()
    loops.start()
    eventually(lambda: decided(fleet, key) == WEST)
    assert loops.bindings.roles("shop0", "web") == {}, "not durable yet"
    loops.gate.set()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    assert int(fleet.get(key)["metadata"]["resourceVersion"]) in loops.durable
    target = eventually(lambda: fleet.get(fleet.key("synctargets", "infra0", "west")))
    assert conditions.is_true(target["status"]["conditions"], "Ready")
    assert [r["resource"] for r in target["status"]["syncedResources"]] == [
        "configmaps",
        "persistentvolumeclaims",
        "deployments",
    ]
    eventually(lambda: fleet.get(fleet.key("locations", "infra0", "aws"))["status"]["availableInstances"] == 1)
    status = eventually(lambda: fleet.get(key)["status"])
    assert (status["phase"], status["selectedLocation"]["locationName"]) == ("Bound", "aws")
    namespace = fleet.key("namespaces", "shop0", "web")
    eventually(
        lambda: conditions.is_true(fleet.get(namespace).get("status", {}).get("conditions"), "NamespaceScheduled")
    )
    assert (WEST, True) in loops.told
    eventually(lambda: loops.feed.reached == fleet.store.revision())
    at = fleet.store.revision()
    pause = threading.Event()
    pause.wait(QUICK.heartbeat * 5)
    assert written(at) == [], "heartbeats are not written"


def test_failover_after_the_tolerance(fleet: Any, loops: Loops, eventually: Any) -> None:
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


def test_missing_credentials_are_a_condition_and_move_nothing(fleet: Any, loops: Loops, eventually: Any) -> None:
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: decided(fleet, key) == WEST)
    loops.missing.add("west")
    target = fleet.key("synctargets", "infra0", "west")

    def ready() -> str:
        found = conditions.get(fleet.get(target)["status"]["conditions"], "Ready")
        return str(found and found["reason"])

    eventually(lambda: ready() == "CredentialsMissing")
    # Nothing else goes on saying what was so before.
    assert {c["status"] for c in fleet.get(target)["status"]["conditions"]} == {"Unknown"}
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws"}, spec={})
    eventually(lambda: fleet.get(fleet.key("locations", "infra0", "aws"))["status"]["availableInstances"] == 1)
    assert decided(fleet, key) == WEST
    loops.missing.clear()
    eventually(lambda: ready() == "Ready")


REFUSALS = {
    "its certificate": Denied("CertificateRefused", "its certificate is not trusted: expired"),
    "401": Denied("Unauthorized", "it does not accept the kubeconfig's credentials"),
    "403": Denied("Forbidden", "its credentials lack rights there"),
    "its address": Denied("AddressRefused", "10.0.0.1 is not allowed; --trust-targets root:infra"),
    "its kubeconfig": None,
}


@pytest.mark.parametrize("how", REFUSALS)
def test_a_target_that_is_refused_or_refuses_us_keeps_what_it_runs_and_takes_nothing(
    how: str, fleet: Any, loops: Loops, eventually: Any
) -> None:
    error = REFUSALS[how]
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    if error is None:
        loops.content["west"] = "exec"
    else:
        loops.clusters["west"].denied = error
    target = fleet.key("synctargets", "infra0", "west")

    def ready() -> dict[str, Any]:
        found = conditions.get((fleet.get(target).get("status") or {}).get("conditions"), "Ready")
        return found or {"status": ""}

    told = eventually(lambda: ready() if ready()["status"] == "Unknown" else None)
    wanted = error or Denied("KubeconfigRefused", "the kubeconfig is refused for `exec`")
    assert (told["reason"], told["message"]) == (wanted.reason, str(wanted))
    since = time.monotonic()
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws"}, spec={})
    location = fleet.key("locations", "infra0", "aws")
    eventually(lambda: fleet.get(location)["status"]["availableInstances"] == 1)
    other = fleet.put("placements", "shop0", "other", spec={**PLACEMENT, "locationWorkspace": "root:infra"})
    eventually(lambda: decided(fleet, other) == EAST)
    eventually(lambda: time.monotonic() - since > QUICK.threshold + QUICK.tolerance + 0.2)
    eventually(lambda: not loops.busy())
    assert decided(fleet, key) == WEST
    assert loops.heartbeats.seen(WEST).sight is Sight.SHUT
    assert loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE, EAST: NamespaceRole.HERE}
    if error is None:
        loops.content.clear()
    else:
        loops.clusters["west"].denied = None
    eventually(lambda: ready()["status"] == "True")


def test_a_target_whose_credentials_have_ended_moves_nothing_however_long_it_is_silent(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    """Who lets nobody in any more may well hang up."""
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    loops.ends.over.add(WEST)
    loops.ends.near[WEST] = conditions.condition("CredentialsValid", False, "CredentialsEnded", "it ended")
    loops.clusters["west"].dead = True
    target = fleet.key("synctargets", "infra0", "west")

    def reasons() -> dict[str, str]:
        return {c["type"]: c["reason"] for c in (fleet.get(target).get("status") or {}).get("conditions", [])}

    ended = dict.fromkeys(("CredentialsValid", "HeartbeatHealthy", "Ready", "SyncerReady"), "CredentialsEnded")
    eventually(lambda: reasons() == ended)
    since = time.monotonic()
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws"}, spec={})
    location = fleet.key("locations", "infra0", "aws")
    eventually(lambda: fleet.get(location)["status"]["availableInstances"] == 1)
    eventually(lambda: time.monotonic() - since > QUICK.threshold + QUICK.tolerance + 0.2)
    eventually(lambda: not loops.busy())
    assert decided(fleet, key) == WEST
    assert loops.heartbeats.seen(WEST).sight is Sight.SHUT


def test_a_status_says_of_which_generation_and_which_credentials_it_is(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    """Of other credentials nothing is told before they have led to an answer: Ready is still said of those before."""
    declare(fleet, "west")
    loops.ends.near[WEST] = conditions.condition("CredentialsValid", True, message="it ends")
    target = fleet.key("synctargets", "infra0", "west")
    fleet.objects.update(target, lambda obj: {**obj, "metadata": {**obj["metadata"], "generation": 1}})
    loops.start()

    def status() -> dict[str, Any]:
        found: dict[str, Any] = fleet.get(target).get("status") or {}
        return found

    def told() -> str:
        return str((conditions.get(status().get("conditions"), "CredentialsValid") or {}).get("message"))

    def ready() -> str:
        return str((conditions.get(status().get("conditions"), "Ready") or {}).get("status"))

    eventually(lambda: (ready(), told(), status()["observedGeneration"]) == ("True", "it ends", 1))

    def cordoned(obj: dict[str, Any]) -> dict[str, Any]:
        return {**obj, "spec": {**obj["spec"], "unschedulable": True}}

    fleet.objects.update(target, cordoned, generation=True)
    eventually(lambda: status()["observedGeneration"] == 2)
    dead = loops.clusters["far"] = FakeCluster("far")
    dead.dead = True
    loops.ends.near[WEST] = conditions.condition("CredentialsValid", True, message="the other ends")
    loops.content["west"] = "far"
    fleet.objects.update(target, lambda obj: {**obj, "spec": {**obj["spec"], "unschedulable": False}}, generation=True)
    eventually(lambda: ready() == "False")
    assert (told(), status()["observedGeneration"]) == ("it ends", 2)
    dead.dead = False
    eventually(lambda: (ready(), told(), status()["observedGeneration"]) == ("True", "the other ends", 3))


def test_what_is_told_of_credentials_is_written_when_it_changes_and_goes_with_its_cause(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    declare(fleet, "west")
    loops.start()
    target = fleet.key("synctargets", "infra0", "west")

    def told() -> str:
        status = fleet.get(target).get("status") or {}
        return str((conditions.get(status.get("conditions"), "CredentialsValid") or {}).get("message"))

    eventually(lambda: WEST in loops.ends.renewed)
    assert told() == "None"
    loops.ends.near[WEST] = conditions.condition("CredentialsValid", True, message="it ends")
    eventually(lambda: told() == "it ends")

    def beats_without_a_write() -> bool:
        """What other loops still had to write of the condition may come in between once, each beat may not."""
        at, beats = fleet.store.revision(), len(loops.ends.renewed)
        eventually(lambda: len(loops.ends.renewed) > beats + 3)
        return bool(fleet.store.revision() == at)

    eventually(beats_without_a_write)
    loops.ends.near.clear()
    eventually(lambda: told() == "None")


def test_another_token_has_nobody_connect_anew(fleet: Any, loops: Loops, eventually: Any) -> None:
    declare(fleet, "west")
    loops.start()
    eventually(lambda: (WEST, True) in loops.told)
    times, beats = len(loops.told), len(loops.ends.renewed)
    loops.content["west"] = "west+token"
    eventually(lambda: len(loops.ends.renewed) > beats + 3)
    assert len(loops.told) == times
    loops.content["west"] = "elsewhere"
    eventually(lambda: len(loops.told) > times)


def test_silence_is_counted_from_when_there_was_a_way_in(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    heartbeats = Heartbeats(60)
    heartbeats.shut("t", "CredentialsMissing", "no Secret")
    now[0] = 3600.0
    heartbeats.shut("t", "CredentialsMissing", "no Secret")
    assert heartbeats.seen("t").sight is Sight.SHUT
    now[0] = 3620.0
    heartbeats.failed("t", "connection refused")
    seen = heartbeats.seen("t")
    assert (seen.sight, seen.silent) == (Sight.UNKNOWN, 20.0)
    now[0] = 3661.0
    assert heartbeats.seen("t").sight is Sight.SILENT


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
    late = [Entry.of(change) for change in fleet.store.changes(at) if change.key == key]
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


def test_sync_targets_and_locations_say_what_they_ask_for_in_vain(fleet: Any, loops: Loops, eventually: Any) -> None:
    target = fleet.put("synctargets", "infra0", "west", spec={"cells": {"rack": "1"}})
    labels = [{"key": "rack", "values": ["1"]}]
    location = fleet.put("locations", "infra0", "aws", spec={"instanceSelector": {}, "availableSelectorLabels": labels})
    loops.start()

    def told(key: Key) -> str:
        found = conditions.get((fleet.get(key).get("status") or {}).get("conditions"), "Supported")
        return str(found and found["message"])

    def since(key: Key) -> str:
        found = conditions.get(fleet.get(key)["status"]["conditions"], "Supported")
        assert found is not None
        return str(found["lastTransitionTime"])

    eventually(lambda: "spec.cells" in told(target) and "spec.availableSelectorLabels" in told(location))
    for key in (target, location):
        assert since(key) == fleet.get(key)["metadata"]["creationTimestamp"]
    fleet.put("synctargets", "infra0", "west", spec={})
    fleet.put("locations", "infra0", "aws", spec={"instanceSelector": {}})
    eventually(lambda: (told(target), told(location)) == ("None", "None"))
    assert "conditions" not in fleet.get(location)["status"]
    before = clock.now()
    fleet.put("locations", "infra0", "aws", spec={"instanceSelector": {}, "availableSelectorLabels": labels})
    eventually(lambda: "spec.availableSelectorLabels" in told(location))
    assert since(location) >= before


def test_a_namespace_that_holds_state_stays_for_what_others_do_and_goes_for_its_own_edit(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    key = declare(fleet, "west")
    claim = fleet.put("persistentvolumeclaims", "shop0", "data", "web")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws"}, spec={})
    location = fleet.key("locations", "infra0", "aws")
    eventually(lambda: fleet.get(location)["status"]["availableInstances"] == 2)

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
