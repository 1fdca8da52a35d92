"""Histories of workspaces and APIs that come by requests and by commits, in any order, with crashes and losses.

Whatever happened: what commits declare is what a recovery makes of the repository alone, nothing of what requests made
is recorded, nothing is left of what is gone, and nothing that only the store has carries anything that a file declares.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.apifleet import LAB_TYPE, LAB_YAML, WIDGETS, WORKSPACES, ApiFleet
from support.loadedfleet import LoadedFleet, configmap

from apiserver.model import marks, origins
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import BINDINGS
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.registry.boundresources import bound_by, recorded_by
from apiserver.registry.catalog import Catalog
from apiserver.registry.keptschemas import KEPT_SCHEMAS, find, ref_of_kept
from apiserver.storage.protocol import Delete, Op
from reconciler.loading import behind

LAB = "workspaces/root/lab"
NAMES = ("x", "y")
APIS = "/apis/apis.kcp.io/v1alpha1"
MERGE = "application/merge-patch+json"
FILES = {
    "workspaces/root/type.yaml": LAB_TYPE,
    f"{LAB}/workspace.yaml": LAB_YAML,
    f"{LAB}/app.yaml": configmap(),
}
SCHEMA: Any = {**WIDGETS, "spec": {**WIDGETS["spec"], "scope": "Cluster"}}
EXPORT: Any = {
    "apiVersion": "apis.kcp.io/v1alpha1",
    "kind": "APIExport",
    "metadata": {"name": "widgets"},
    "spec": {"latestResourceSchemas": ["v1.widgets.example.io"]},
}


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION: Any = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.io"},
    "spec": {
        "group": "example.io",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"},
        "scope": "Cluster",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def binding(provider: str) -> Any:
    reference = {"export": {"path": provider, "name": "widgets"}}
    metadata = {"name": "widgets"}
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": metadata,
        "spec": {"reference": reference},
    }


class Story:
    """What happens to one fleet. Requests may be refused: what counts is what they leave."""

    def __init__(self, fleet: ApiFleet) -> None:
        self.fleet = fleet
        fleet.begin(FILES)
        assert not fleet.held()

    def path(self, number: int) -> str:
        return f"root:lab:{NAMES[number % 2]}" + (":x" if number % 4 > 1 else "")

    def make(self, number: int) -> None:
        self._workspace("POST", self.path(number))

    def unmake(self, number: int) -> None:
        self._workspace("DELETE", self.path(number))

    def _workspace(self, method: str, path: str) -> None:
        parent, _, name = path.rpartition(":")
        body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}}
        named = "" if method == "POST" else f"/{name}"
        self.fleet.call(method, parent, WORKSPACES + named, body if method == "POST" else b"")

    def hold(self, number: int) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "h", "finalizers": ["example.io/hold"]}}
        self.fleet.call("POST", self.path(number), "/api/v1/namespaces/default/configmaps", body)

    def let_go(self, number: int) -> None:
        path = "/api/v1/namespaces/default/configmaps/h"
        self.fleet.call("PATCH", self.path(number), path, {"metadata": {"finalizers": None}}, kind=MERGE)

    def offer(self, number: int) -> None:
        self.fleet.call("POST", self.path(number), f"{APIS}/apiresourceschemas", SCHEMA)
        self.fleet.call("POST", self.path(number), f"{APIS}/apiexports", EXPORT)

    def withdraw(self, number: int) -> None:
        self.fleet.call("DELETE", self.path(number), f"{APIS}/apiexports/widgets")
        self.fleet.call("DELETE", self.path(number), f"{APIS}/apiresourceschemas/v1.widgets.example.io")

    def redo(self, number: int) -> None:
        """Another schema of the same name, with another scope."""
        schemas, name = f"{APIS}/apiresourceschemas", SCHEMA["metadata"]["name"]
        there = self.fleet.call("GET", self.path(number), f"{schemas}/{name}").json
        self.fleet.call("DELETE", self.path(number), f"{schemas}/{name}")
        scope = "Namespaced" if there.get("spec", {}).get("scope") == "Cluster" else "Cluster"
        another = {**SCHEMA, "spec": {**SCHEMA["spec"], "scope": scope}}
        self.fleet.call("POST", self.path(number), schemas, another)

    def bind(self, number: int) -> None:
        self.fleet.call("POST", self.path(number), f"{APIS}/apibindings", binding(self.path(number + 1)))

    def use(self, number: int) -> None:
        body = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
        for place in ("", "/namespaces/default"):  # whichever the schema says
            self.fleet.call("POST", self.path(number), f"/apis/example.io/v1{place}/widgets", body)

    def unuse(self, number: int) -> None:
        for place in ("", "/namespaces/default"):
            self.fleet.call("DELETE", self.path(number), f"/apis/example.io/v1{place}/widgets/w")

    def unbind(self, number: int) -> None:
        self.fleet.call("DELETE", self.path(number), f"{APIS}/apibindings/widgets")

    def space(self, number: int) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
        self.fleet.call("POST", self.path(number), "/api/v1/namespaces", body)

    def unspace(self, number: int) -> None:
        self.fleet.call("DELETE", self.path(number), "/api/v1/namespaces/mine")

    def define(self, number: int) -> None:
        """A definition of names that may be bound."""
        self.fleet.call("POST", self.path(number), CRDS, DEFINITION)

    def undefine(self, number: int) -> None:
        self.fleet.call("DELETE", self.path(number), f"{CRDS}/gadgets.example.io")

    def late(self, number: int) -> None:
        """Somebody writes to a workspace while its end is written."""
        path, write = self.path(number), self.fleet.store.write
        record = tree.workspace_at(self.fleet.store, path)
        place = tree.cluster_key(record.cluster) if record is not None else None
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "late"}}

        def before(*ops: Op) -> Any:
            if any(isinstance(op, Delete) and op.key == place for op in ops):
                self.fleet.store.write = write  # type: ignore[method-assign]
                self.fleet.call("POST", path, "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
            return write(*ops)

        self.fleet.store.write = before  # type: ignore[method-assign]
        self.unmake(number)
        self.fleet.settle()
        self.fleet.store.write = write  # type: ignore[method-assign]

    def push(self, number: int) -> None:
        """A directory where a request may have made a workspace."""
        directory = f"{LAB}/{NAMES[number % 2]}"
        self.fleet.commit({f"{directory}/workspace.yaml": "", f"{directory}/app.yaml": configmap(n=str(number))})

    def pull(self, number: int) -> None:
        directory = f"{LAB}/{NAMES[number % 2]}"
        if f"{directory}/workspace.yaml" in self.fleet.tree():
            self.fleet.commit({f"{directory}/workspace.yaml": None, f"{directory}/app.yaml": None})

    def away(self, number: int) -> None:
        """All of root:lab goes, and comes back with the next."""
        there = [path for path in self.fleet.tree() if path.startswith(LAB)]
        self.fleet.commit(dict.fromkeys(there) if there else {p: t for p, t in FILES.items() if p.startswith(LAB)})

    def settle(self, number: int) -> None:
        self.fleet.settle()

    def restart(self, number: int) -> None:
        self.fleet.restart(killed=number % 2 == 1)

    def restore(self, number: int) -> None:
        """The store turns out to be older than the status branch: what git knows is recovered."""
        self.fleet.settle()
        self.fleet.publish()
        behind.forget(self.fleet.store)
        self.fleet.committer = self.fleet.new_committer()
        self.fleet.load(self.fleet.recorded())


_WORDS = """make unmake hold let_go offer withdraw redo bind use unuse unbind space unspace define undefine late
push pull away settle restart restore"""
EVENTS: dict[str, Callable[[Story, int], None]] = {name: getattr(Story, name) for name in _WORDS.split()}
SHARED = [("make", 0), ("make", 1), ("settle", 0), ("offer", 1), ("bind", 0), ("settle", 0)]
HISTORIES = st.lists(
    st.tuples(st.sampled_from([*EVENTS, "make", "make", "settle", "settle"]), st.integers(0, 3)), max_size=16
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
@example(history=[("make", 0), ("settle", 0), ("make", 2), ("settle", 0), ("hold", 2), ("unmake", 0), ("settle", 0)])
@example(history=[("make", 0), ("push", 0), ("settle", 0), ("unmake", 0)])
@example(history=[("make", 0), ("settle", 0), ("space", 0), ("settle", 0), ("unspace", 0), ("late", 0)])
@example(history=[("make", 0), ("settle", 0), ("offer", 0), ("settle", 0), ("space", 0), ("late", 0), ("make", 0)])
@example(history=[("make", 0), ("make", 1), ("settle", 0), ("offer", 1), ("define", 0), ("bind", 0), ("undefine", 0)])
@example(history=[("make", 0), ("settle", 0), ("push", 0), ("restore", 0), ("unmake", 0)])
@example(
    history=[
        ("make", 0),
        ("make", 1),
        ("settle", 0),
        ("offer", 1),
        ("bind", 0),
        ("settle", 0),
        ("use", 0),
        ("unmake", 1),
    ]
)
@example(history=[*SHARED, ("use", 0), ("redo", 1), ("settle", 0), ("restart", 0), ("unuse", 0), ("use", 0)])
@example(history=[*SHARED, ("use", 0), ("withdraw", 1), ("settle", 0), ("redo", 1), ("restore", 0), ("unbind", 0)])
@example(history=[*SHARED, ("withdraw", 1), ("settle", 0), ("unmake", 0)])
@example(history=[("make", 0), ("settle", 0), ("hold", 0), ("away", 0), ("settle", 0), ("away", 0), ("let_go", 0)])
def test_requests_and_commits_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("story")
    with closing(ApiFleet(folder / "fleet")) as fleet:
        story = Story(fleet)
        for name, number in history:
            EVENTS[name](story, number)
        fleet.settle()
        who_is_bound_is_served(fleet)
        fleet.load()
        fleet.settle()
        nothing_is_left(fleet)
        who_is_bound_is_served(fleet)
        if "restore" not in (name for name, _ in history):  # what is recovered is in no log
            no_key_is_left(fleet)
        every_namespace_has_its_own(fleet)
        fleet.publish()
        with closing(LoadedFleet(folder / "again", repo=fleet.repo, keys=fleet.keys)) as again:
            again.load(again.recorded())
            agree(fleet, again)


def nothing_is_left(fleet: LoadedFleet) -> None:
    """Every object is of a workspace that is there, and every workspace has what stands for it."""
    store, records = fleet.store, {record.path: record for record in fleet.records()}
    clusters = {record.cluster for record in records.values()}
    for resource in store.resources():
        if not resource.startswith("~"):
            strays = {r.key for r in store.scan(resource).records if r.key.cluster not in clusters}
            assert not strays
    assert {r.key.cluster for r in store.scan(Internal.WORKSPACE).records} == clusters
    for record in records.values():
        if record.stored:
            workspace = fleet.workspace(record.path)
            assert workspace["spec"]["cluster"] == record.cluster
            assert workspace["status"]["phase"] == ("Deleting" if record.leaves else "Ready")
        assert not record.parent or record.parent in records
    for table in (Table.HELD, Table.LEAVING, Table.PROVIDERS):
        assert {row.key for row in store.scan_rows(table)} <= records.keys()
    fleet.listed()


def who_is_bound_is_served(fleet: LoadedFleet) -> None:
    """With what each binding records, which is kept for no one else; and nothing that is there is out of reach."""
    store, named = fleet.store, set()
    for record in store.scan(BINDINGS).records:
        binding = orjson.loads(record.value)
        recorded = recorded_by(binding)
        assert None not in find(store, sorted(recorded)), record.key
        named |= recorded
        kinds = Catalog(store).kinds(record.key.cluster)
        for resource in {each.storage for each in bound_by(binding)}:
            kind = kinds.of_storage(resource)
            for obj in store.scan(resource, record.key.cluster).records:
                assert kind is not None and kind.namespaced == bool(obj.key.namespace), obj.key
    assert {ref_of_kept(record.key) for record in store.scan(KEPT_SCHEMAS).records} <= named


def no_key_is_left(fleet: LoadedFleet) -> None:
    """Of exports that were made through the API."""
    there = {f"{r.key.cluster}:widgets" for r in fleet.store.scan("apiexports.apis.kcp.io").records}
    assert {file.name.removeprefix("~") for file in (fleet.keys / "identities").glob("*:widgets")} <= there


def every_namespace_has_its_own(fleet: LoadedFleet) -> None:
    for record in fleet.store.scan("namespaces").records:
        metadata = orjson.loads(record.value)["metadata"]
        if is_own(record.value) and "deletionTimestamp" not in metadata:
            for resource, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
                assert fleet.store.get(Key(resource, record.key.cluster, record.key.name, name)), record.key


def agree(fleet: LoadedFleet, again: LoadedFleet) -> None:
    """Of what commits declare, or what waits of what they took away."""
    stored = {record.path for record in fleet.records() if record.stored}
    assert {r.path for r in again.records()} - stored == {r.path for r in fleet.records()} - stored
    clusters = {record.cluster for record in fleet.records() if not record.stored}
    mine = {key: value for key, value in fleet.everything().items() if key.cluster in clusters and not is_own(value)}
    theirs = {key: value for key, value in again.everything().items() if key in mine}
    assert not [*map(str, differing(mine, theirs))]


def differing(mine: dict[Any, bytes], theirs: dict[Any, bytes]) -> Any:
    for key, value in mine.items():
        if theirs.get(key) != value:
            yield key, value.decode(), (theirs.get(key) or b"").decode()


def is_own(value: bytes) -> bool:
    """Whether only the store knows of it, or it tells of what only the store knows."""
    obj = orjson.loads(value)
    annotations = obj["metadata"].get("annotations") or {}
    mark = annotations.get(marks.ORIGIN)
    if mark == marks.RUNTIME and not origins.path_in(annotations):
        return True
    return mark == marks.REMOVED
