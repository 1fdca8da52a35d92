"""Garbage collection over a store's log: owners, policies, circles, what git declares; and against a naive model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.following import Following

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry import deletion
from apiserver.registry.kinds import kinds_of_crd, overlay, target_builtins
from apiserver.registry.objects import Objects
from apiserver.registry.rest_options import BACKGROUND, FOREGROUND, ORPHAN, Collection, DeleteOptions
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Store
from apiserver.stores import DECLARED
from reconciler.controllers.garbage import Garbage

Object = dict[str, Any]
Settle = Callable[[Following], None]
CONFIGMAPS, ROLES = "configmaps", "clusterroles.rbac.authorization.k8s.io"
KINDS = {
    CONFIGMAPS: ("v1", "ConfigMap", "", "v1"),
    ROLES: ("rbac.authorization.k8s.io/v1", "ClusterRole", "rbac.authorization.k8s.io", "v1"),
}
GADGETS = {
    "spec": {
        "group": "x.io",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True}],
    }
}


class World:
    """One cluster of a store, and garbage collection that does its work when told to."""

    def __init__(self, store: Store, settle: Settle, cluster: str = "c") -> None:
        self.store, self.cluster = store, cluster
        self._settle = settle
        self.objects = Objects(store)
        self.table = target_builtins()
        self.begin()

    def begin(self) -> None:
        """As a process that goes on where the last one was, if there was one."""
        if hasattr(self, "follower"):
            self.follower.feed.save()
        self.garbage = Garbage(self.store, lambda _: self.table)
        self.follower = Following.of(self.store, self.garbage)

    def key(self, name: str, resource: str = CONFIGMAPS, namespace: str = "n") -> Key:
        return Key(resource, self.cluster, namespace if resource != ROLES else "", name)

    def put(self, name: str, *owners: Object, resource: str = CONFIGMAPS, namespace: str = "n", **meta: Any) -> Object:
        version, kind, _, _ = KINDS[resource]
        metadata = {**meta, **({"ownerReferences": list(owners)} if owners else {})}
        obj = {"kind": kind, "apiVersion": version, "metadata": metadata}
        return self.objects.create(self.key(name, resource, namespace), obj)

    def delete(self, name: str, policy: str = BACKGROUND, resource: str = CONFIGMAPS, namespace: str = "n") -> None:
        _, _, group, version = KINDS[resource]
        kind = self.table.by_resource(group, version, resource.partition(".")[0])
        assert kind is not None
        at = Collection(self.store, kind, self.table, self.cluster)
        deletion.delete(at, namespace, name, DeleteOptions(policy=policy))

    def settle(self) -> None:
        """Do all there is to do, in this thread."""
        self._settle(self.follower)

    def names(self) -> list[str]:
        return [o["metadata"]["name"] for r in (CONFIGMAPS, ROLES) for o in self.objects.list(r, self.cluster)]

    def owners(self, name: str, resource: str = CONFIGMAPS) -> list[str]:
        found = self.objects.get(self.key(name, resource))
        assert found is not None
        return [r["name"] for r in found["metadata"].get("ownerReferences") or ()]


def owner(obj: Object, blocks: bool = False, **other: Any) -> Object:
    reference = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    }
    return {**reference, **({"blockOwnerDeletion": True} if blocks else {}), **other}


@pytest.fixture
def world(store: Store, settle: Settle) -> World:
    return World(store, settle)


def test_what_nobody_owns_any_more_goes_and_the_rest_stays(world: World) -> None:
    a, b = world.put("a"), world.put("b")
    child = world.put("child", owner(a))
    world.put("grandchild", owner(child))
    world.put("shared", owner(a), owner(b))
    world.put("free")
    world.settle()
    assert len(world.names()) == 6
    world.delete("a")
    world.settle()
    assert world.names() == ["b", "free", "shared"]
    assert world.owners("shared") == ["b"]
    world.delete("b")
    world.settle()
    assert world.names() == ["free"]


def test_nothing_to_do_is_no_write(world: World) -> None:
    a = world.put("a")
    world.put("child", owner(a, blocks=True))
    world.settle()
    before = world.store.revision()
    world.begin()
    world.settle()
    assert world.store.revision() == before


def test_an_owner_is_one_of_that_uid_kind_and_place(world: World) -> None:
    a = world.put("a", namespace="n")
    wide = world.put("wide", resource=ROLES)
    world.put("other-uid", owner(a, uid="someone-else"))
    world.put("other-kind", owner(a, kind="Secret"))
    world.put("other-namespace", owner(a), namespace="m")
    world.put("of-wide", owner(wide), namespace="m")
    world.put("unknown-kind", owner(a, apiVersion="x.io/v1", kind="Gadget"))
    world.put("narrow-owner", owner(a), resource=ROLES)
    world.settle()
    assert world.names() == ["of-wide", "a", "unknown-kind", "narrow-owner", "wide"]


def test_an_owner_in_another_namespace_is_reported(world: World) -> None:
    for name in ("n", "m"):
        space = {"kind": "Namespace", "apiVersion": "v1", "metadata": {}}
        world.objects.create(Key("namespaces", world.cluster, "", name), space)
    a = world.put("a", namespace="n")
    world.put("other-namespace", owner(a), namespace="m")
    world.put("narrow-owner", owner(a), resource=ROLES)
    world.put("gone", owner(a, uid="nobody"), namespace="m")
    world.settle()
    assert world.names() == ["a", "narrow-owner"]
    told = {(e["metadata"]["namespace"], e["involvedObject"]["name"]): e for e in world.objects.list("events")}
    assert told.keys() == {("m", "other-namespace"), ("default", "narrow-owner")}
    event = told["m", "other-namespace"]
    meant = f"[v1/ConfigMap, namespace: m, name: a, uid: {a['metadata']['uid']}]"
    assert event["message"] == f'ownerRef {meant} does not exist in namespace "m"'
    assert (event["type"], event["reason"]) == ("Warning", "OwnerRefInvalidNamespace")
    before = world.store.revision()
    world.begin()
    world.settle()
    assert world.store.revision() == before


def test_a_reference_counts_once_its_kind_is_served(world: World) -> None:
    world.put("child", owner({"apiVersion": "x.io/v1", "kind": "Gadget", "metadata": {"name": "g", "uid": "u"}}))
    world.settle()
    assert world.names() == ["child"]
    world.table = overlay(world.table, kinds_of_crd(GADGETS))
    crd = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", **GADGETS}
    key = Key("customresourcedefinitions.apiextensions.k8s.io", world.cluster, "", "gadgets.x.io")
    world.objects.create(key, crd)
    world.settle()
    assert world.names() == []


def test_what_an_owner_leaves_goes_though_its_kind_went_with_it(world: World) -> None:
    """As a definition that is deleted takes its objects along."""
    without, world.table = world.table, overlay(world.table, kinds_of_crd(GADGETS))
    gadget = world.key("owner", "gadgets.x.io")
    found = world.objects.create(gadget, {"kind": "Gadget", "apiVersion": "x.io/v1", "metadata": {}})
    world.put("dependent", owner(found))
    world.settle()
    assert world.names() == ["dependent"]
    world.store.write(Delete(gadget)).result()
    world.table = without
    world.settle()
    assert world.names() == []


def test_a_workspace_does_not_see_its_neighbours(store: Store, settle: Settle) -> None:
    here, there = World(store, settle, "here"), World(store, settle, "there")
    a = there.put("a")
    here.put("a")
    here.put("child", owner(a))
    there.put("child", owner(a))
    here.settle()
    assert (here.names(), there.names()) == (["a"], ["a", "child"])


def test_foreground_waits_for_those_that_block(world: World) -> None:
    a = world.put("a")
    world.put("held", owner(a, blocks=True), finalizers=["x.io/hold"])
    world.put("free", owner(a))
    world.delete("a", FOREGROUND)
    world.settle()
    assert world.names() == ["a", "held"]
    waiting = world.objects.get(world.key("a"))
    assert waiting is not None
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]

    def released(obj: Object) -> Object:
        del obj["metadata"]["finalizers"]
        return obj

    world.objects.update(world.key("held"), released)
    world.objects.delete(world.key("held"))
    world.settle()
    assert world.names() == []


def test_foreground_goes_down_generations(world: World) -> None:
    a = world.put("a")
    b = world.put("b", owner(a, blocks=True))
    world.put("c", owner(b, blocks=True), finalizers=["x.io/hold"])
    world.delete("a", FOREGROUND)
    world.settle()
    found = {n: world.objects.get(world.key(n)) for n in "abc"}
    assert all(o is not None and o["metadata"].get("deletionTimestamp") for o in found.values())
    world.objects.delete(world.key("c"))
    world.settle()
    assert world.names() == []


def test_orphans_stay_without_their_owner(world: World) -> None:
    a, b = world.put("a"), world.put("b")
    world.put("child", owner(a, blocks=True), owner(b))
    world.delete("a", ORPHAN)
    world.settle()
    assert (world.names(), world.owners("child")) == (["b", "child"], ["b"])


@pytest.mark.parametrize("policy", [FOREGROUND, BACKGROUND, ORPHAN])
def test_circles_end(world: World, policy: str) -> None:
    for name in "abc":
        world.put(name)
    for name, of in (("a", "c"), ("b", "a"), ("c", "b")):
        found = world.objects.get(world.key(of))
        assert found is not None

        def owned(obj: Object, found: Object = found) -> Object:
            obj["metadata"]["ownerReferences"] = [owner(found, blocks=True)]
            return obj

        world.objects.update(world.key(name), owned)
    world.settle()
    assert world.names() == ["a", "b", "c"]
    world.delete("a", policy)
    world.settle()
    assert world.names() == (["b", "c"] if policy == ORPHAN else [])


def test_what_git_declares_is_left_alone(world: World) -> None:
    declared = {"annotations": {marks.SOURCE_PATH: "x/y.yaml"}}
    a = world.put("a", **declared)
    world.put("declared", owner(a, blocks=True), **declared)
    world.put("made", owner(a, blocks=True))
    gone = owner(a, uid="gone")
    world.put("lost", gone, **declared)
    world.settle()
    assert world.names() == ["a", "declared", "lost", "made"]
    world.delete("a", FOREGROUND)
    world.settle()
    assert world.names() == ["declared", "lost"]
    assert (world.owners("declared"), world.owners("lost")) == (["a"], ["a"])


def test_one_made_anew_under_the_name_is_another(world: World) -> None:
    a = world.put("a")
    world.put("child", owner(a))
    world.settle()
    world.objects.update(world.key("a"), lambda o: {**o, "metadata": {**o["metadata"], "uid": "another"}})
    world.settle()
    assert world.names() == ["a"]


def test_what_happened_while_it_was_away_is_made_good(world: World) -> None:
    a = world.put("a")
    world.put("child", owner(a))
    world.put("kept", owner(world.put("b"), blocks=True))
    world.settle()
    world.delete("a")
    world.delete("b", ORPHAN)
    world.store.compact(0)
    world.begin()
    world.settle()
    assert (world.names(), world.owners("kept")) == (["kept"], [])


def test_it_runs_by_itself(world: World, eventually: Callable[..., Any]) -> None:
    a = world.put("a")
    world.put("child", owner(a))
    world.follower.start()
    try:
        world.delete("a")
        eventually(lambda: world.names() == [])
        eventually(lambda: world.follower.idle)
    finally:
        world.follower.stop()


# -- against a naive model


Graph = dict[int, dict[int, bool]]
"""Child → owners, each with whether the child blocks its deletion."""


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, frozenset[int], list[tuple[int, str]]]:
    """Owners of some objects, which of them git declares, and deletions with their policies."""
    size = draw(st.integers(2, 7))
    nodes = st.integers(0, size - 1)
    owners = st.dictionaries(nodes, st.booleans(), max_size=3)
    graph = {n: {o: b for o, b in draw(owners).items() if o != n} for n in range(size)}
    declared = draw(st.frozensets(nodes, max_size=1))
    policies = st.sampled_from([BACKGROUND, FOREGROUND, ORPHAN])
    return graph, declared, draw(st.lists(st.tuples(nodes, policies), min_size=1, max_size=3))


def expected(graph: Graph, declared: frozenset[int], node: int, policy: str) -> Graph:
    """What is left: whoever has owners and none that stands goes; the others lose references to nobody."""
    left = {n: set(o) for n, o in graph.items()}
    if policy == ORPHAN:
        left = {n: o if n in declared else o - {node} for n, o in left.items()}
    gone = {node}
    while True:
        more = {
            n
            for n, o in left.items()
            if n not in gone and n not in declared and o and not any(x in left and x not in gone for x in o)
        }
        if not more:
            break
        gone |= more
    return {
        n: dict.fromkeys(sorted(o if n in declared else {x for x in o if x in left and x not in gone}), False)
        for n, o in left.items()
        if n not in gone
    }


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Iterator[int]]]:
    opened = open_store(Path(tmp_path_factory.mktemp("graphs")), sync=False, declared=DECLARED)
    yield opened, itertools.count()
    opened.close()


@settings(max_examples=150)
@given(graphs(), st.booleans())
def test_owner_graphs(
    shared: tuple[Store, Iterator[int]],
    settle: Settle,
    drawn: tuple[Graph, frozenset[int], list[tuple[int, str]]],
    anew: bool,
) -> None:
    store, numbers = shared
    graph, declared, deletions = drawn
    world = World(store, settle, f"c{next(numbers)}")
    world.settle()
    named = {marks.SOURCE_PATH: "x.yaml"}
    objects = {n: world.put(str(n), annotations=named if n in declared else {}) for n in graph}
    for n, owners in graph.items():
        references = [owner(objects[o], b) for o, b in owners.items()]
        if references:
            world.objects.update(
                world.key(str(n)),
                lambda o, references=references: {**o, "metadata": {**o["metadata"], "ownerReferences": references}},
            )
    world.settle()
    for node, policy in deletions:
        if node not in graph:
            continue
        world.delete(str(node), policy)
        if anew:
            world.begin()
        world.settle()
        graph = expected(graph, declared, node, policy)
        found = {int(n): set(map(int, world.owners(n))) for n in world.names()}
        assert found == {n: set(o) for n, o in graph.items()}
