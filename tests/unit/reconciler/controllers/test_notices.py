"""Events of what happens: from the log, once each, within bounds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.following import Following

from apiserver.endpoints import health
from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.registry import codec, tree
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, DeleteAll, Put, Store
from apiserver.stores import DECLARED
from reconciler.controllers import fleetcondition
from reconciler.controllers.fleetcondition import Trouble
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.notices import EventSettings, Notices
from reconciler.plan.notices import About, Notice
from reconciler.syncing.report import synced
from reconciler.syncing.upstream import Item

Object = dict[str, Any]

WORKSPACES, CLUSTERS = "workspaces.tenancy.kcp.io", "logicalclusters.core.kcp.io"
GOOD = {"type": "CommitApplied", "status": "True", "message": "all that was judged of it is served"}


class Told:
    """Workspaces in a store, what is said of them, and the Events that there are."""

    def __init__(self, store: Store) -> None:
        self.store, self.lines, self.clock = store, list[str](), 0.0
        for path, cluster in (("root", "root"), ("root:shop", "shop0")):
            record = tree.WorkspaceRecord(path, cluster, path.rpartition(":")[0])
            self.store.write(tree.put_workspace(record), tree.placed(record)).result()
            self.put(CLUSTERS, cluster, "cluster", conditions=[GOOD])
        self.store.write(tree.put_fleet(tree.FleetRecord("fleet", True))).result()
        self.store.fill(tree.placed(tree.WorkspaceRecord("root", "root", ""))).result()

    def put(self, resource: str, cluster: str, name: str, **status: Any) -> Key:
        group = resource.partition(".")[2]
        kind = {WORKSPACES: "Workspace", CLUSTERS: "LogicalCluster"}.get(resource) or (
            "Placement" if "placements" in resource else "SyncTarget"
        )
        metadata = {"name": name, "uid": f"u-{name}", "annotations": {}, "creationTimestamp": "2026-01-01T00:00:00Z"}
        obj = {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": metadata, "status": status}
        key = Key(resource, cluster, "", name)
        self.store.write(Put(key, codec.encode(obj))).result()
        return key

    def workspace(self, name: str, held: str = "", cluster: str = "root") -> Key:
        said = {"type": "CommitApplied", "status": "False", "message": f"held back at the last good commit: {held}"}
        return self.put(WORKSPACES, cluster, name, conditions=[said if held else GOOD])

    def follow(self, **more: Any) -> Following:
        def told(path: str, notice: Notice) -> None:
            self.lines.append(f"{path} {notice.about.name} {notice.reason}")

        return Following(
            self.store,
            lambda feed: Manager("test", [Notices(self.store, told, now=lambda: self.clock, **more)], feed, CAREFUL),
        )

    def settle(self, following: Following) -> None:
        following.settle()
        self.clock += 2
        following.settle()

    def events(self) -> list[Object]:
        return [codec.decode(r.value, r.revision) for r in self.store.scan("events").records]

    def said(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for event in self.events():
            found[f"{event['involvedObject']['kind']} {event['involvedObject']['name']} {event['reason']}"] += event[
                "count"
            ]
        return found


@pytest.fixture
def told(store: Store) -> Told:
    return Told(store)


def test_what_was_there_is_not_told_and_what_turns_is_once(told: Told) -> None:
    told.workspace("shop", "a.yaml:3: bad")
    following = told.follow()
    told.settle(following)
    assert told.events() == []
    told.workspace("shop", "a.yaml:3: bad")
    told.settle(following)
    assert told.events() == []
    told.workspace("shop")
    told.workspace("shop", "b.yaml:1: worse")
    told.settle(following)
    mended, held = sorted(told.events(), key=lambda event: event["reason"], reverse=True)
    assert (mended["type"], mended["reason"], mended["message"]) == ("Normal", "Mended", GOOD["message"])
    assert (held["type"], held["reason"]) == ("Warning", "Held")
    assert held["message"] == "held back at the last good commit: b.yaml:1: worse"
    assert held["involvedObject"] == {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "name": "shop",
        "uid": "u-shop",
    }
    assert (held["metadata"]["namespace"], held["count"]) == ("default", 1)
    assert held["metadata"]["annotations"]["treeplane.dev/origin"] == "runtime"
    assert told.lines == ["root shop Mended", "root shop Held"]


@pytest.mark.parametrize(("kind", "begin"), [("SourceFollowed", "Source"), ("SourceStatusWritten", "SourceStatus")])
def test_a_source_that_is_lost_and_back(told: Told, kind: str, begin: str) -> None:
    following = told.follow()
    told.settle(following)
    for status, reason in (
        ("Unknown", "Fetching"), ("True", "Followed"), ("False", "Unreachable"), ("False", "Unreachable"),
        ("False", "Unauthorized"), ("True", "Followed"), ("Unknown", "Fetching"), ("True", "Followed"),
    ):  # fmt: skip
        said = {"type": kind, "status": status, "reason": reason, "message": f"at {reason}"}
        told.put(WORKSPACES, "root", "shop", conditions=[GOOD, said])
    told.settle(following)
    assert told.said() == {
        f"Workspace shop {begin}Unreachable": 1,
        f"Workspace shop {begin}Unauthorized": 1,
        f"Workspace shop {kind}": 1,
    }
    assert {each["type"] for each in told.events() if each["reason"] != kind} == {"Warning"}


PLACEMENTS, TARGETS = "placements.scheduling.kcp.io", "synctargets.workload.kcp.io"


def on(target: str, synced: str = "", message: str = "") -> Object:
    said = [{"type": "Synced", "status": synced, "message": message}] if synced else []
    where = {"syncTarget": {"path": "root:infra", "name": target}} if target else {}
    return {**where, "conditions": [{"type": "Scheduled", "status": "True", "message": f"runs on {target}"}, *said]}


def test_a_placement_and_its_target(told: Told) -> None:
    following = told.follow()
    told.settle(following)
    for status in (
        on(""), on("west"), on("west", "True"), on("east", "True"), on("east", "False", "Deployment a/b: no"),
        on("east", "False", "Deployment a/b: no"), on("east", "True"), on(""),
    ):  # fmt: skip
        told.put(PLACEMENTS, "shop0", "all", **status)
    answered: Object = {}
    for status, reason in (
        ("Unknown", "Connecting"), ("Unknown", "CredentialsMissing"),  # they are yet to come: nobody is lost
        ("True", "Ready"), ("False", "ErrorHeartbeat"), ("True", "Ready"),
        ("Unknown", "CredentialsMissing"), ("Unknown", "CredentialsMissing"), ("True", "Ready"),
    ):  # fmt: skip
        answered |= {"lastSyncerHeartbeatTime": "2026-01-01T00:00:00Z"} if status == "True" else {}
        told.put(
            TARGETS, "root", "west", conditions=[{"type": "Ready", "status": status, "reason": reason}], **answered
        )
    told.settle(following)
    assert told.said() == {
        "Placement all Placed": 1,
        "Placement all Moved": 1,
        "Placement all Synced": 2,
        "Placement all SyncFailed": 1,
        "Placement all Unplaced": 1,
        "SyncTarget west TargetLost": 2,
        "SyncTarget west TargetBack": 2,
    }


def test_what_a_first_load_brought_is_placed_without_a_word(told: Told) -> None:
    told.put(PLACEMENTS, "shop0", "all", **on(""))
    following = told.follow()
    told.settle(following)
    told.put(PLACEMENTS, "shop0", "all", **on("west"))
    told.put(PLACEMENTS, "shop0", "all", **on("west", "True"))
    told.settle(following)
    assert told.events() == []
    told.put(PLACEMENTS, "shop0", "all", **on("east", "True"))
    told.settle(following)
    assert told.said() == {"Placement all Moved": 1}


def test_the_fleet_is_told_of_on_its_root(told: Told) -> None:
    following = told.follow()
    told.settle(following)
    for status, reason, message in (
        ("True", "Followed", ""),
        ("False", "RemoteAway", "no answer"),
        ("False", "RemoteAway", "no answer"),
        ("True", "Followed", ""),
    ):
        said = {"type": "FleetFollowed", "status": status, "reason": reason, "message": message}
        told.put(CLUSTERS, "root", "cluster", conditions=[GOOD, said])
    told.settle(following)
    assert told.said() == {"LogicalCluster cluster FleetRemoteAway": 1, "LogicalCluster cluster FleetFollowed": 1}


@pytest.mark.parametrize("trouble", Trouble)
def test_every_trouble_of_the_fleet_is_told_wherever_somebody_looks(told: Told, trouble: Trouble) -> None:
    """In readyz, to insiders and outsiders, in the condition and in Events: as long as it lasts, and not longer."""
    following = told.follow()
    told.settle(following)
    fleetcondition.tell(told.store, trouble, "something is wrong: run treeplane")
    told.settle(following)
    troubles = tree.troubles(told.store)
    assert health.trouble(troubles, texts=False) == trouble.value
    assert health.trouble(troubles, texts=True) == f"{trouble.value}: something is wrong: run treeplane"
    root = told.store.get(Key(CLUSTERS, "root", "", "cluster"))
    assert root is not None
    found = conditions.get(codec.decode(root.value, root.revision)["status"]["conditions"], "FleetFollowed")
    assert found is not None
    assert (found["status"], found["reason"]) == ("False", trouble.value)
    assert found["message"] == "something is wrong: run treeplane"
    assert told.said() == {f"LogicalCluster cluster Fleet{trouble.value}": 1}
    fleetcondition.tell(told.store, trouble)
    told.settle(following)
    assert tree.troubles(told.store) == {}
    assert told.said() == {f"LogicalCluster cluster Fleet{trouble.value}": 1, "LogicalCluster cluster FleetFollowed": 1}


def test_deletions_in_number(told: Told) -> None:
    following = told.follow(settings=EventSettings(gather=0))
    told.settle(following)
    keys = [Key("configmaps", "shop0", "default", f"c{number:02}") for number in range(25)]
    value = codec.encode({"metadata": {"annotations": {"treeplane.dev/source-path": "a.yaml"}}, "kind": "ConfigMap"})
    told.store.write(*(Put(key, value) for key in keys)).result()
    told.store.write(*(Delete(key) for key in keys[:3])).result()
    told.settle(following)
    assert told.events() == [], "few are a day's work"
    told.store.write(*(Delete(key) for key in keys[3:])).result()
    told.settle(following)
    [event] = told.events()
    assert (event["reason"], event["message"].partition(" with")[0]) == (
        "ObjectsDeleted",
        "22 objects that files declared went",
    )


def test_a_workspace_that_goes_is_told_of_above(told: Told) -> None:
    following = told.follow(settings=EventSettings(gather=0))
    told.settle(following)
    for name in ("a", "b"):
        record = tree.WorkspaceRecord(f"root:shop:{name}", f"{name}0", "root:shop", directory=f"workspaces/root/{name}")
        told.store.write(tree.put_workspace(record), tree.placed(record)).result()
        told.store.write(*tree.forgotten(record)).result()
    told.settle(following)
    [event] = told.events()
    assert event["message"] == "2 workspaces went: a, b"
    assert event["involvedObject"]["kind"] == "LogicalCluster"


def test_of_thousands_some_are_told_one_by_one_and_so_many_a_second(told: Told) -> None:
    following = told.follow(settings=EventSettings(burst=60, rate=10.0))
    told.settle(following)
    for number in range(120):
        told.workspace(f"w{number:03}", "bad")
    following.settle()
    assert len(told.events()) == 51
    [rest] = (event for event in told.events() if event["involvedObject"]["kind"] == "LogicalCluster")
    assert rest["message"] == "70 more of kind Workspace: w050, w051, w052, w053, w054 and 65 more"
    for number in range(30):
        told.workspace(f"x{number:03}", "bad")
    following.settle()
    assert len(told.events()) == 60


def test_the_same_again_is_counted_and_too_much_of_one_is_not_told(told: Told) -> None:
    following = told.follow()
    told.settle(following)
    for _ in range(30):
        told.workspace("shop", "bad")
        told.workspace("shop")
    told.settle(following)
    assert sum(told.said().values()) == 25, "as of client-go"
    told.clock += 601
    told.workspace("shop", "bad")
    told.settle(following)
    [event] = (event for event in told.events() if event["reason"] == "Held")
    assert event["metadata"]["managedFields"][0]["manager"] == "treeplane", "it is kept from here on"
    assert event["count"] == 31


def test_many_words_for_one_thing_are_combined(told: Told) -> None:
    following = told.follow()
    told.settle(following)
    for number in range(12):
        told.workspace("shop", f"bad {number}")
    told.settle(following)
    combined = [event for event in told.events() if event["message"].startswith("(combined from similar events): ")]
    assert [event["count"] for event in combined] == [3]
    assert len(told.events()) == 10


def test_nothing_is_written_where_the_workspace_is_gone(told: Told) -> None:
    following = told.follow()
    told.settle(following)
    record = tree.WorkspaceRecord("root:shop", "shop0", "root")
    told.put(PLACEMENTS, "shop0", "all", **on("west"))
    told.put(PLACEMENTS, "root", "all", **on("west"))
    told.store.write(DeleteAll("shop0", told.store.revision()), *tree.forgotten(record)).result()
    told.settle(following)
    assert {event["metadata"]["annotations"]["kcp.io/cluster"] for event in told.events()} <= {"root"}


def test_what_no_entry_tells_is_said_by_whoever_knows(told: Told) -> None:
    notices = Notices(told.store, now=lambda: told.clock)
    following = Following(told.store, lambda feed: Manager("test", [notices], feed, CAREFUL))
    following.settle()
    about = About("apps/v1", "Deployment", "web", "web", "u-web")
    notices.say(Notice("shop0", about, "DriftPutRight", "on sync target root:infra:west: put back"))
    following.settle()
    [event] = told.events()
    assert (event["metadata"]["namespace"], event["involvedObject"]["namespace"]) == ("web", "web")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("hold"), st.sampled_from("abc"), st.integers(0, 2)),
        st.tuples(st.just("mend"), st.sampled_from("abc"), st.just(0)),
        st.tuples(st.just("restart"), st.just(""), st.just(0)),
        st.tuples(st.just("kill"), st.just(""), st.just(0)),
        st.tuples(st.just("settle"), st.just(""), st.just(0)),
    ),
    max_size=20,
)


@given(steps=STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_happened_is_said_once_whatever_ends_between(
    steps: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every turn stands in an Event, and no turn in two: over restarts, and after a kill."""
    store = open_store(Path(tmp_path_factory.mktemp("notices")) / "store", declared=DECLARED, sync=False)
    try:
        told = Told(store)
        for name in "abc":
            told.workspace(name)
        store.fill(tree.placed(tree.WorkspaceRecord("root", "root", ""))).result()
        following = told.follow()
        told.settle(following)
        following.feed.save()
        wanted: Counter[str] = Counter()
        state = dict.fromkeys("abc", "")
        for step, name, number in steps:
            match step:
                case "settle":
                    told.settle(following)
                case "restart":
                    told.settle(following)
                    following.feed.save()
                    following = told.follow()
                case "kill":
                    following = told.follow()
                case _:
                    why = f"bad {number}" if step == "hold" else ""
                    if why and why != state[name]:
                        wanted[f"Workspace {name} Held"] += 1
                    elif not why and state[name]:
                        wanted[f"Workspace {name} Mended"] += 1
                    state[name] = why
                    told.workspace(name, why)
        told.settle(following)
        assert told.said() == wanted
    finally:
        store.close()


class Copies:
    """Copies of ConfigMaps on a sync target, some refused: what the syncer says, and what it has in the namespace's
    condition some time later."""

    ON = "on sync target root:infra:west: "

    def __init__(self, store: Store) -> None:
        self.store, self.told = store, Told(store)
        self.refused = dict[str, str]()
        self.known = dict[str, str]()
        """As this run of the server knows."""
        self.start()

    def start(self) -> None:
        self.notices = Notices(self.store, now=lambda: self.told.clock)
        self.following = Following(self.store, lambda feed: Manager("test", [self.notices], feed, CAREFUL))
        self.following.settle()
        self.known = {}

    def meet(self) -> None:
        """The syncer meets all that there is."""
        for name in "abcdefgh":
            why, before = self.refused.get(name, ""), self.known.get(name, "")
            about = About("v1", "ConfigMap", name, "web", f"u-{name}")
            if why and why != before:
                self.notices.say(Notice("shop0", about, "CopyRefused", f"{self.ON}{why}", warning=True))
            elif before and not why:
                self.notices.say(Notice("shop0", about, "CopyTaken", f"{self.ON}it is there"))
            self.known = {**self.known, name: why}
        self.following.settle()

    def report(self) -> None:
        items = {Item(CONFIGMAPS, "shop0", "web", name): why for name, why in self.known.items() if why}
        said = {**synced(items, {}), "type": "NamespaceSynced"}
        metadata = {"name": "web", "uid": "u-web", "annotations": {}}
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": {"conditions": [said]}}
        self.store.write(Put(Key("namespaces", "shop0", "", "web"), codec.encode(obj))).result()

    def forget(self) -> None:
        """Events are over by their time."""
        self.store.write(*(Delete(record.key) for record in self.store.scan("events").records)).result()

    def counted(self) -> Counter[str]:
        return Counter({f"{key.split()[1]} {key.split()[2]}": n for key, n in self.told.said().items()})


CONFIGMAPS = GroupResource("", "configmaps")
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("refuse"), st.sampled_from("abcdefgh"), st.sampled_from(["quota", "webhook"])),
        st.tuples(st.just("take"), st.sampled_from("abcdefgh"), st.just("")),
        st.tuples(st.just("restart"), st.just(""), st.just("")),
    ),
    max_size=20,
)


@given(turns=TURNS, lasts=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_refusal_that_lasts_over_a_restart_is_not_said_again(
    turns: list[tuple[str, str, str]], lasts: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nor when its Events have gone by then, if its namespace lists it (five are); every turn is said once."""
    store = open_store(Path(tmp_path_factory.mktemp("copies")) / "store", declared=DECLARED, sync=False)
    try:
        copies, wanted = Copies(store), Counter[str]()
        gone = Counter[str]()
        for turn, name, why in turns:
            match turn:
                case "refuse":
                    if copies.refused.get(name) != why:
                        wanted[f"{name} CopyRefused"] += 1
                    copies.refused[name] = why
                case "take" if copies.refused.pop(name, ""):
                    wanted[f"{name} CopyTaken"] += 1
                case "restart":
                    copies.report()
                    if not lasts and len(copies.refused) <= 5:
                        gone += copies.counted()
                        copies.forget()
                    copies.start()
            copies.meet()
        assert copies.counted() + gone == wanted
    finally:
        store.close()


def test_what_was_over_while_no_server_ran_is_said_when_it_comes_again(store: Store) -> None:
    copies = Copies(store)
    copies.refused["a"] = "quota"
    copies.meet()
    copies.report()
    copies.refused.clear()
    copies.start()
    copies.meet()
    copies.report()
    copies.start()
    copies.refused["a"] = "quota"
    copies.meet()
    assert copies.counted() == {"a CopyRefused": 2}
