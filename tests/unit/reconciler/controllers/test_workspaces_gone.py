"""That nothing is left of a workspace that was made through the API, whoever writes to it while it goes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import LAB_TYPE, LAB_YAML, WIDGETS, WORKSPACES, ApiFleet, Reply

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.protocol import Delete, Op, Put

LAB = "workspaces/root/lab"
LAB_PATH, SHOP = "root:lab", "root:lab:shop"
MERGE = "application/merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
APIS = "/apis/apis.kcp.io/v1alpha1"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    made = ApiFleet(tmp_path / "fleet")
    made.begin({"workspaces/root/type.yaml": LAB_TYPE, f"{LAB}/workspace.yaml": LAB_YAML})
    assert not made.held()
    made.settle()  # the loops are at work
    yield made
    made.close()


def configmap(name: str, **metadata: Any) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def role(name: str) -> Any:
    """What stands in no namespace, so that none takes it along."""
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}


def workspace(name: str) -> Any:
    return {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}}


def just_before(fleet: ApiFleet, concerns: Callable[[Sequence[Op]], bool], happens: Callable[[], object]) -> None:
    """The next write that concerns somebody is decided on, and something else happens before it."""
    store, write = fleet.store, fleet.store.write

    def late(*ops: Op) -> Future[list[int]]:
        if concerns(ops):
            store.write = write  # type: ignore[method-assign]
            happens()
        return write(*ops)

    store.write = late  # type: ignore[method-assign]


def makes(name: str) -> Callable[[Sequence[Op]], bool]:
    return lambda ops: any(isinstance(op, Put) and op.key.name == name for op in ops)


def takes_away(cluster: str) -> Callable[[Sequence[Op]], bool]:
    return lambda ops: any(isinstance(op, Delete) and op.key == tree.cluster_key(cluster) for op in ops)


def nothing_of(fleet: ApiFleet, cluster: str, path: str = SHOP) -> None:
    assert not fleet.store.keys(cluster)
    for table in set(Table) - {Table.CHECKPOINTS, Table.ROLES}:
        assert not [row for row in fleet.store.scan_rows(table) if cluster in row.key or path in row.key]


def test_what_is_asked_for_before_it_goes_and_written_behind_is_refused(fleet: ApiFleet) -> None:
    fleet.make(SHOP)
    cluster = fleet.record(SHOP).cluster
    just_before(fleet, makes("late"), lambda: fleet.unmake(SHOP))
    reply = fleet.call("POST", SHOP, MAPS, configmap("late"))
    assert (reply.status, "because it is being terminated" in reply.message) == (403, True)
    nothing_of(fleet, cluster)


def test_what_is_applied_then_is_refused_too(fleet: ApiFleet) -> None:
    fleet.make(SHOP)
    cluster = fleet.record(SHOP).cluster
    just_before(fleet, makes("late"), lambda: fleet.unmake(SHOP))
    path, kind = f"{MAPS}/late?fieldManager=me", "application/apply-patch+yaml"
    assert fleet.call("PATCH", SHOP, path, configmap("late"), kind=kind).status == 403
    nothing_of(fleet, cluster)


def test_what_comes_while_its_end_is_written_goes_with_it(fleet: ApiFleet) -> None:
    fleet.make(SHOP)
    cluster, replies = fleet.record(SHOP).cluster, list[Reply]()
    just_before(fleet, takes_away(cluster), lambda: replies.append(fleet.call("POST", SHOP, ROLES, role("late"))))
    fleet.unmake(SHOP)
    assert [reply.status for reply in replies] == [201]
    nothing_of(fleet, cluster)


def test_so_does_what_comes_while_a_commit_takes_a_workspace_away(fleet: ApiFleet) -> None:
    cluster, replies = fleet.record("root:lab").cluster, list[Reply]()
    just_before(fleet, takes_away(cluster), lambda: replies.append(fleet.call("POST", "root:lab", ROLES, role("late"))))
    fleet.commit({f"{LAB}/workspace.yaml": None})
    fleet.settle()
    assert [reply.status for reply in replies] == [201]
    nothing_of(fleet, cluster, "root:lab")


def test_a_workspace_that_is_asked_for_then_is_never_made(fleet: ApiFleet) -> None:
    fleet.make(SHOP)
    cluster = fleet.record(SHOP).cluster
    just_before(fleet, takes_away(cluster), lambda: fleet.call("POST", SHOP, WORKSPACES, workspace("web")))
    fleet.unmake(SHOP)
    nothing_of(fleet, cluster)
    assert tree.workspace_at(fleet.store, f"{SHOP}:web") is None


def test_a_workspace_is_not_made_in_one_that_goes_meanwhile(fleet: ApiFleet) -> None:
    """Its parent is there when what it has is put together, and gone when that would be written."""
    fleet.make(SHOP)
    record = fleet.record(SHOP)
    assert fleet.call("POST", SHOP, WORKSPACES, workspace("web")).status == 201
    gone = [Delete(key) for key in fleet.store.keys(record.cluster) if key.name != "web"]
    just_before(fleet, makes("web"), lambda: fleet.store.write(*gone, *tree.forgotten(record)).result())
    fleet.settle()
    assert tree.workspace_at(fleet.store, f"{SHOP}:web") is None
    nothing_of(fleet, record.cluster)


EXPORT: Any = {
    "apiVersion": "apis.kcp.io/v1alpha1",
    "kind": "APIExport",
    "metadata": {"name": "widgets"},
    "spec": {},
}


def identities(fleet: ApiFleet) -> list[str]:
    return sorted(file.name for file in (fleet.keys / "identities").glob("*:widgets"))


def test_identity_keys_go_with_their_export(fleet: ApiFleet) -> None:
    fleet.make(SHOP)
    cluster = fleet.record(SHOP).cluster
    assert fleet.call("POST", SHOP, f"{APIS}/apiexports", EXPORT).status == 201
    fleet.settle()
    secret = Key("secrets", cluster, "kcp-system", "widgets")
    assert (identities(fleet), fleet.store.get(secret) is not None) == ([f"~{cluster}:widgets"], True)
    assert fleet.call("DELETE", SHOP, f"{APIS}/apiexports/widgets").status == 200
    fleet.settle()
    assert (identities(fleet), fleet.store.get(secret)) == ([], None)


def test_identity_keys_go_with_their_workspace(fleet: ApiFleet) -> None:
    fleet.make(SHOP)
    cluster = fleet.record(SHOP).cluster
    fleet.call("POST", SHOP, f"{APIS}/apiexports", EXPORT)
    fleet.settle()
    fleet.unmake(SHOP)
    assert not identities(fleet)
    nothing_of(fleet, cluster)


def test_identity_keys_go_with_a_workspace_that_waits(fleet: ApiFleet) -> None:
    """All of it says then that no file declares it, whoever made it."""
    fleet.make(SHOP)
    fleet.call(
        "POST", SHOP, f"{APIS}/apiexports", {**EXPORT, "metadata": {"name": "widgets", "finalizers": ["a.io/b"]}}
    )
    fleet.settle()
    assert len(identities(fleet)) == 1
    fleet.unmake(SHOP)
    assert len(identities(fleet)) == 1
    nothing = {"metadata": {"finalizers": None}}
    assert fleet.call("PATCH", SHOP, f"{APIS}/apiexports/widgets", nothing, kind=MERGE).status == 200
    fleet.settle()
    assert tree.workspace_at(fleet.store, SHOP) is None
    assert not identities(fleet)


def test_one_that_a_file_declares_later_keeps_its_key(fleet: ApiFleet) -> None:
    fleet.call("POST", LAB_PATH, f"{APIS}/apiexports", EXPORT)
    fleet.settle()
    hashed = fleet.get(LAB_PATH, "apiexports.apis.kcp.io", "widgets")["status"]["identityHash"]
    text = "apiVersion: apis.kcp.io/v1alpha1\nkind: APIExport\nmetadata: {name: widgets}\nspec: {}\n"
    fleet.commit({f"{LAB}/export.yaml": text})
    fleet.settle()
    assert fleet.get(LAB_PATH, "apiexports.apis.kcp.io", "widgets")["status"]["identityHash"] == hashed
    [key] = identities(fleet)
    assert key == f"{fleet.record(LAB_PATH).cluster}:widgets"


def test_those_of_git_stay_for_a_commit_that_is_gone_back_to(fleet: ApiFleet) -> None:
    text = "apiVersion: apis.kcp.io/v1alpha1\nkind: APIExport\nmetadata: {name: widgets}\nspec: {}\n"
    fleet.commit({f"{LAB}/export.yaml": text})
    fleet.settle()
    before = identities(fleet)
    assert len(before) == 1
    fleet.commit({f"{LAB}/export.yaml": None, f"{LAB}/workspace.yaml": None})
    fleet.settle()
    assert identities(fleet) == before


def everything(fleet: ApiFleet) -> Any:
    """How much there is: objects of each resource, Treeplane's own among them, rows, keys, open files."""
    gc.collect()  # other tests' files, which would be closed while this one runs
    store = fleet.store
    objects = {name: number for name in store.resources() if (number := store.count(name))}
    rows = {table: len([*store.scan_rows(table)]) for table in Table}
    files = sorted(str(file) for file in fleet.keys.rglob("*"))
    return objects, rows, files, len(list(Path("/proc/self/fd").iterdir()))


def lived_in(fleet: ApiFleet) -> None:
    """A tree of workspaces with whatever a tenant may make: APIs that are shared within it, definitions, quotas, homes
    for tokens."""
    provider, consumer, deep = f"{SHOP}:provider", f"{SHOP}:consumer", f"{SHOP}:consumer:deep"
    for path in (SHOP, provider, consumer, deep):
        assert fleet.make(path).status == 201
    export = {**EXPORT, "spec": {"latestResourceSchemas": [WIDGETS["metadata"]["name"]]}}
    reference = {"reference": {"export": {"path": provider, "name": "widgets"}}}
    binding = {**EXPORT, "kind": "APIBinding", "spec": reference}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"secrets": "1"}}}
    account = {"kubernetes.io/service-account.name": "default"}
    token = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
             "metadata": {"name": "t", "annotations": account}}  # fmt: skip
    widget = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
    for path, rest, body in (
        (provider, f"{APIS}/apiresourceschemas", WIDGETS),
        (provider, f"{APIS}/apiexports", export),
        (consumer, f"{APIS}/apibindings", binding),
        (deep, f"{APIS}/apibindings", binding),
        (consumer, "/apis/example.io/v1/namespaces/default/widgets", widget),
        (deep, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}),
        (deep, "/api/v1/namespaces/mine/resourcequotas", quota),
        (deep, "/api/v1/namespaces/default/secrets", token),
    ):
        reply = fleet.call("POST", path, rest, body)
        assert reply.status == 201, (rest, reply.message)
        fleet.settle()


def test_whatever_was_made_in_it_nothing_is_left(fleet: ApiFleet) -> None:
    lived_in(fleet)
    fleet.unmake(SHOP)
    before = everything(fleet)
    lived_in(fleet)
    fleet.unmake(SHOP)
    assert everything(fleet) == before


def test_hundreds_of_children_go_before_their_parent(fleet: ApiFleet) -> None:
    fleet.make(SHOP)
    before = everything(fleet)
    for number in range(300):
        assert fleet.call("POST", SHOP, WORKSPACES, workspace(f"w{number}")).status == 201
    fleet.settle()
    clusters = [record.cluster for record in fleet.records() if record.path.startswith(SHOP)]
    assert len(clusters) == 301
    top, since = fleet.record(SHOP).cluster, fleet.store.revision()
    fleet.unmake(SHOP)
    gone = [c.key.cluster for c in fleet.store.changes(since) if c.key.resource == "~workspaces" and c.value is None]
    assert (set(gone), gone[-1]) == (set(clusters), top)
    fleet.make(SHOP)
    assert everything(fleet) == before


def test_one_whose_workspace_is_no_more_goes_whatever_that_said(fleet: ApiFleet) -> None:
    """Its finalizer in words is none."""
    fleet.make(SHOP)
    record = fleet.record(SHOP)
    key = Key("workspaces.tenancy.kcp.io", fleet.record("root:lab").cluster, "", "shop")

    def bare(obj: Any) -> None:
        obj["metadata"].update(finalizers=[], labels={"said": "core.kcp.io/logicalcluster"})

    fleet.update(key, bare)
    fleet.store.write(Delete(key)).result()
    fleet.settle()
    nothing_of(fleet, record.cluster)
