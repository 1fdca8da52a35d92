"""How namespaces, definitions and Events end: controllers for all workspaces of a store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from support.following import Following

from apiserver.model import clock, marks
from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.registry import deletion, strategy
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import target_builtins
from apiserver.registry.objects import Objects
from apiserver.registry.rest_options import Collection, DeleteOptions
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Store
from apiserver.stores import DECLARED
from reconciler.controllers.definitionlife import DefinitionLife
from reconciler.controllers.expiry import EventExpiry
from reconciler.controllers.namespacelife import NamespaceLife

Object = dict[str, Any]
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "x.io",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
HELD = {"finalizers": ["x.io/hold"]}
FILE = {"annotations": {marks.SOURCE_PATH: "shop/a.yaml"}}
MADE = {"annotations": {marks.ORIGIN: marks.RUNTIME}}


class World:
    def __init__(self, store: Store, settle: Callable[[Following], None]) -> None:
        self.store, self._settle = store, settle
        self.objects = Objects(store)
        self.catalog = Catalog(store, target_builtins())
        self.time = time.time()
        self.begin()

    def begin(self, lingers: float = 0.0) -> None:
        """As a process that goes on where the last one was, if there was one."""
        if hasattr(self, "follower"):
            self.follower.feed.save()
        kinds = self.catalog.kinds
        self.expiry = EventExpiry(self.store, 3600, lambda: self.time)
        parts = [NamespaceLife(self.store, kinds, lingers=lingers), DefinitionLife(self.store, kinds), self.expiry]
        self.follower = Following.of(self.store, *parts)

    def settle(self) -> None:
        self._settle(self.follower)

    def namespace(self, name: str = "shop", **meta: Any) -> Key:
        obj = {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": meta,
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        return self.put("namespaces", name, obj, "")

    def config_map(self, name: str, namespace: str = "shop", **meta: Any) -> Key:
        obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta}
        return self.put("configmaps", name, obj, namespace)

    def gadget(self, name: str, **meta: Any) -> Key:
        obj = {"kind": "Gadget", "apiVersion": "x.io/v1", "metadata": meta}
        return self.put("gadgets.x.io", name, obj, "shop")

    def definition(self, **meta: Any) -> Key:
        obj = {**GADGETS, "metadata": meta}
        obj["status"] = strategy.crd_status(obj, clock.now())
        return self.put(CRDS, "gadgets.x.io", obj, "")

    def event(self, name: str, metadata: Object | None = None, **content: Any) -> Key:
        """Made at the time that it is here, however late it is elsewhere by now."""
        made = {"creationTimestamp": clock.rfc3339(self.time), **(metadata or {})}
        return self.put("events", name, {"kind": "Event", "apiVersion": "v1", "metadata": made, **content}, "shop")

    def put(self, resource: str, name: str, obj: Object, namespace: str) -> Key:
        key = Key(resource, "c", namespace, name)
        self.objects.create(key, obj)
        return key

    def delete(self, group: str, version: str, resource: str, name: str, namespace: str = "") -> None:
        kinds = self.catalog.kinds("c")
        kind = kinds.by_resource(group, version, resource)
        assert kind is not None
        deletion.delete(Collection(self.store, kind, kinds, "c"), namespace, name, DeleteOptions())

    def free(self, key: Key) -> None:
        """Takes the finalizers away, as an update through the API does."""
        found = self.objects.get(key)
        assert found is not None
        if found["metadata"].get("deletionTimestamp"):
            self.objects.delete(key)

    def conditions(self, key: Key) -> dict[str, tuple[str, str, str]]:
        found = self.objects.get(key)
        assert found is not None
        return {c["type"]: (c["status"], c["reason"], c["message"]) for c in found["status"]["conditions"]}


@pytest.fixture
def world(store: Store, settle: Callable[[Following], None]) -> World:
    return World(store, settle)


@pytest.fixture
def store(tmp_path: Any) -> Any:
    opened = open_store(tmp_path / "store", sync=False, declared=DECLARED)
    yield opened
    opened.close()


def test_a_namespace_goes_with_all_that_is_in_it(world: World) -> None:
    world.definition()
    key = world.namespace()
    inside = [world.config_map("a"), world.gadget("g"), world.event("e")]
    outside = world.config_map("b", "other")
    world.namespace("other")
    world.delete("", "v1", "namespaces", "shop")
    world.settle()
    assert [world.objects.get(k) for k in (key, *inside)] == [None] * 4
    assert world.objects.get(outside)


def test_a_namespace_that_is_empty_lingers(world: World) -> None:
    world.begin(lingers=60)
    key, inside = world.namespace(), world.config_map("a")
    world.delete("", "v1", "namespaces", "shop")
    world.settle()
    left = world.objects.get(key)
    assert left is not None
    assert (world.objects.get(inside), left["status"]["phase"]) == (None, "Terminating")
    long_ago = clock.rfc3339(time.time() - 61)
    world.objects.update(key, lambda o: {**o, "metadata": {**o["metadata"], "deletionTimestamp": long_ago}})
    world.settle()
    assert world.objects.get(key) is None


def test_a_namespace_says_what_it_waits_for(world: World) -> None:
    key = world.namespace()
    held, other = world.config_map("held", **HELD), world.config_map("other", finalizers=["x.io/hold", "y.io/too"])
    world.config_map("a")
    world.delete("", "v1", "namespaces", "shop")
    world.settle()
    assert world.conditions(key) == {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: "
            "x.io/hold in 2 resource instances, y.io/too in 1 resource instances",
        ),
    }
    before = world.store.revision()
    world.begin()
    world.settle()
    assert world.store.revision() == before
    world.free(held)
    world.settle()
    assert "configmaps. has 1 resource" in world.conditions(key)["NamespaceContentRemaining"][2]
    world.free(other)
    world.settle()
    assert world.objects.get(key) is None


def test_pods_go_first(world: World) -> None:
    key = world.namespace()
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": {"nodeName": "n", "containers": []}}
    pod["spec"] = {"nodeName": "n", "terminationGracePeriodSeconds": 30}
    running, needed = world.put("pods", "p", pod, "shop"), world.config_map("a")
    world.delete("", "v1", "namespaces", "shop")
    world.settle()
    ending = world.objects.get(running)
    assert ending is not None
    assert ending["metadata"]["deletionGracePeriodSeconds"] == 30
    assert world.objects.get(needed)
    world.objects.delete(running)
    world.settle()
    assert world.objects.get(key) is None


def test_other_finalizers_of_a_namespace_are_respected(world: World) -> None:
    key = world.namespace(**HELD)
    world.delete("", "v1", "namespaces", "shop")
    world.settle()
    found = world.objects.get(key)
    assert found is not None
    assert found["spec"]["finalizers"] == []
    assert world.conditions(key)["NamespaceContentRemaining"][0] == "False"


def test_a_namespace_keeps_what_git_declares(world: World) -> None:
    key, kept, made = world.namespace(), world.config_map("kept", **FILE), world.config_map("made", **MADE)
    world.delete("", "v1", "namespaces", "shop")
    world.settle()
    assert (world.objects.get(made), bool(world.objects.get(kept))) == (None, True)
    told = world.conditions(key)["NamespaceDeletionContentFailure"]
    assert told[:2] == ("True", "ContentDeletionFailed")
    assert 'configmaps "kept" is declared in shop/a.yaml' in told[2]
    world.objects.delete(kept)
    world.settle()
    assert world.objects.get(key) is None


@pytest.mark.parametrize("away", [False, True])
def test_a_namespace_that_a_commit_removes_takes_runtime_objects_along(world: World, away: bool) -> None:
    key = world.namespace()
    made, declared, system = (world.config_map(n, **m) for n, m in (("made", MADE), ("declared", FILE), ("system", {})))
    held = world.config_map("held", **{**MADE, **HELD})
    if not away:
        world.settle()
    world.store.write(Delete(key)).result()
    if away:
        world.store.compact(0)
    world.settle()
    assert world.objects.get(made) is None
    assert world.objects.get(declared)
    assert world.objects.get(system)
    waiting = world.objects.get(held)
    assert waiting is not None
    assert waiting["metadata"]["deletionTimestamp"]


def test_a_namespace_that_goes_with_its_workspace_costs_no_transaction(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [world.namespace("shop"), world.config_map("settings")]
    world.settle()
    world.store.write(*map(Delete, keys)).result()
    calls: list[str] = []
    scan, write = world.store.scan, world.store.write
    monkeypatch.setattr(world.store, "scan", lambda *a, **k: calls.append(f"scan {a[0]}") or scan(*a, **k))
    monkeypatch.setattr(world.store, "write", lambda *ops: calls.append(f"write {ops}") or write(*ops))
    world.settle()
    assert calls == []


def test_what_comes_after_a_namespace_came_back_stays(world: World) -> None:
    key = world.namespace()
    world.settle()
    old = world.config_map("old", **MADE)
    world.store.write(Delete(key)).result()
    world.namespace()
    new = world.config_map("new", **MADE)
    world.settle()
    assert (world.objects.get(old), bool(world.objects.get(new))) == (None, True)


def test_large_namespaces_end_in_pieces(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.controllers.namespacelife._SLICE", 10)
    monkeypatch.setattr("reconciler.controllers.namespacelife._PAGE", 4)
    key = world.namespace()
    for number in range(45):
        world.config_map(f"c{number}")
    world.delete("", "v1", "namespaces", "shop")
    world.settle()
    assert (world.objects.get(key), list(world.objects.list("configmaps"))) == (None, [])


def test_a_definition_goes_after_its_instances(world: World) -> None:
    key = world.definition()
    world.namespace()
    gadget, held = world.gadget("g"), world.gadget("held", **HELD)
    world.settle()
    world.delete("apiextensions.k8s.io", "v1", "customresourcedefinitions", "gadgets.x.io")
    world.settle()
    assert world.objects.get(gadget) is None
    assert world.conditions(key)["Terminating"] == (
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    before = world.store.revision()
    world.begin()
    world.settle()
    assert world.store.revision() == before
    world.free(held)
    world.settle()
    assert world.objects.get(key) is None


def test_a_definition_that_was_never_established_goes_at_once(world: World) -> None:
    key = world.put(CRDS, "gadgets.x.io", {**GADGETS, "metadata": {}}, "")
    world.delete("apiextensions.k8s.io", "v1", "customresourcedefinitions", "gadgets.x.io")
    world.settle()
    assert world.objects.get(key) is None


def test_a_definition_of_a_kind_that_is_built_in_takes_nothing_along(world: World) -> None:
    names = {"plural": "deployments", "singular": "deployment", "kind": "Deployment", "listKind": "DeploymentList"}
    spec: Any = GADGETS["spec"]
    obj: Object = {**GADGETS, "metadata": {}, "spec": {**spec, "group": "apps", "names": names}}
    obj["status"] = strategy.crd_status(obj, clock.now())
    key = world.put(CRDS, "deployments.apps", obj, "")
    world.namespace()
    kept = world.put("deployments.apps", "web", {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {}}, "shop")
    world.delete("apiextensions.k8s.io", "v1", "customresourcedefinitions", "deployments.apps")
    world.settle()
    assert (world.objects.get(key), bool(world.objects.get(kept))) == (None, True)


def test_a_definition_names_instances_that_git_declares(world: World) -> None:
    key = world.definition()
    world.gadget("kept", **FILE)
    world.delete("apiextensions.k8s.io", "v1", "customresourcedefinitions", "gadgets.x.io")
    world.settle()
    told = world.conditions(key)["Terminating"]
    assert (told[1], "shop/a.yaml" in told[2]) == ("InstanceDeletionFailed", True)


@pytest.mark.parametrize("away", [False, True])
def test_instances_without_a_definition_go(world: World, away: bool) -> None:
    key = world.definition()
    world.namespace()
    made, declared = world.gadget("made", **{**MADE, **HELD}), world.gadget("declared", **FILE)
    if not away:
        world.settle()
    world.store.write(Delete(key)).result()
    if away:
        world.store.compact(0)
    world.settle()
    assert (world.objects.get(made), bool(world.objects.get(declared))) == (None, True)


def test_events_end_an_hour_after_they_were_written(world: World) -> None:
    world.namespace()
    world.settle()
    first, second = world.event("first"), world.event("second")
    world.settle()
    world.time += 1800
    world.objects.update(first, lambda o: {**o, "count": 2, "metadata": {**o["metadata"], **written(world.time)}})
    world.settle()
    world.time += 1801
    world.expiry.queue.add(Key("~tick", "", "", ""))
    world.settle()
    assert (bool(world.objects.get(first)), world.objects.get(second)) == (True, None)
    world.time += 1800
    world.expiry.queue.add(Key("~tick", "", "", ""))
    world.settle()
    assert world.objects.get(first) is None


def written(at: float) -> Object:
    """As the API notes a write of that time."""
    return {"managedFields": [{"manager": "kubelet", "operation": "Update", "time": clock.rfc3339(at)}]}


def test_events_are_as_old_as_the_server_says_at_a_start(world: World) -> None:
    world.namespace()

    def created(ago: float) -> Object:
        return {"creationTimestamp": clock.rfc3339(world.time - ago)}

    old = world.event("old", lastTimestamp=clock.rfc3339(world.time), metadata=created(3700))
    seen = world.event("seen", metadata={**created(9000), **written(world.time - 10)})
    world.settle()
    assert [bool(world.objects.get(k)) for k in (old, seen)] == [False, True]


def test_an_event_that_is_dated_into_the_future_ends_as_if_it_were_written_now(world: World) -> None:
    world.namespace()
    world.settle()
    future = world.event("future", metadata=written(world.time + 9000))
    world.settle()
    [row] = world.store.scan_rows(Table.APPOINTMENTS)
    assert abs(int(row.value) / 1000 - time.time() - 3600) < 60
    world.time += 3601
    world.expiry.queue.add(future._replace(resource="~late"))  # the appointment
    world.settle()
    assert world.objects.get(future) is None


def test_events_that_stay_for_the_sake_of_a_file_are_passed_once_for_all(world: World) -> None:
    world.namespace()
    declared = [world.event(f"declared-{n}", metadata={**FILE, **written(world.time)}) for n in range(3)]
    made = world.event("made", metadata=written(world.time))
    world.time += 3601
    world.settle()
    assert [bool(world.objects.get(key)) for key in (*declared, made)] == [True] * 3 + [False]
