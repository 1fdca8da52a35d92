"""Workspaces that are made through the API where writes go to the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import ADMIN, WORKSPACES, ApiFleet
from support.loadedfleet import configmap

from apiserver.model.tables import Table
from apiserver.registry import tree
from reconciler.repository.difference import difference

ANN = {"username": "ann"}
MAPS = "/api/v1/namespaces/default/configmaps"
LAB = "workspaces/root/lab"
TYPES = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: lab}
spec: {writes: Store, defaultChildWorkspaceType: {name: universal, path: root}}
---
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: nowhere}
spec: {limitAllowedParents: {none: true}}
---
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: batch}
spec: {defaultAPIBindings: [{path: root:compute, export: kubernetes}]}
"""
LAB_YAML = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: lab, path: root}}
"""
MEMBER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: member}
rules:
- {nonResourceURLs: [/], verbs: [access]}
- {apiGroups: [tenancy.kcp.io], resources: [workspaces], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: member}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: member}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    """root:lab takes writes; ann may make workspaces there."""
    made = ApiFleet(tmp_path / "fleet")
    made.begin(
        {
            "workspaces/root/types.yaml": TYPES,
            f"{LAB}/workspace.yaml": LAB_YAML,
            f"{LAB}/member.yaml": MEMBER,
        }
    )
    assert not made.held()
    yield made
    made.close()


def condition(obj: Any, kind: str) -> tuple[str, str]:
    found = next(c for c in obj["status"]["conditions"] if c["type"] == kind)
    return found["status"], found.get("reason", "")


def test_a_workspace_is_there_with_what_every_one_has(fleet: ApiFleet) -> None:
    made = fleet.make("root:lab:shop", user="ann")
    assert made.status == 201, made.message
    assert made.json["status"]["phase"] == "Scheduling"
    assert made.json["spec"]["type"] == {"name": "universal", "path": "root"}
    workspace = fleet.workspace("root:lab:shop")
    assert workspace["status"]["phase"] == "Ready"
    assert condition(workspace, "WorkspaceScheduled")[0] == "True"
    record = fleet.record("root:lab:shop")
    assert (workspace["spec"]["cluster"], record.stored, record.writes) == (record.cluster, True, "Store")
    assert fleet.find("root:lab:shop", "namespaces", "default", "") is not None
    cluster = fleet.get("root:lab:shop", "logicalclusters.core.kcp.io", "cluster")
    assert cluster["spec"]["owner"]["uid"] == made.json["metadata"]["uid"]
    assert cluster["status"]["phase"] == "Ready"


def test_who_made_it_rules_it_and_nobody_else(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", user="ann")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert fleet.call("POST", "root:lab:shop", MAPS, body, user="ann").status == 201
    assert fleet.call("GET", "root:lab:shop", MAPS, user="bob").status == 403
    assert fleet.record("root:lab:shop").cluster not in str(fleet.call("GET", "root:lab:shop", MAPS, user="bob").json)


def test_its_url_is_where_it_is(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop")
    found = fleet.call("GET", "root:lab", f"{WORKSPACES}/shop").json
    assert found["spec"]["URL"].endswith("/clusters/root:lab:shop")


def test_what_comes_together_stands_side_by_side(fleet: ApiFleet) -> None:
    """So that a transaction touches few of the store's pages."""
    names = [f"shop{number}" for number in range(3)]
    for name in names:
        fleet.make(f"root:lab:{name}")
    clusters = [fleet.record(f"root:lab:{name}").cluster for name in names]
    halves = [cluster[:8] for cluster in clusters]
    assert halves == sorted(halves)
    assert len({*clusters}) == len(clusters)
    assert {len(cluster) for cluster in clusters} == {16}


def test_a_write_is_answered_with_what_is_read_then(fleet: ApiFleet) -> None:
    """What is said of an object only when it is read stands in the answer, too."""
    fleet.make("root:lab:shop")
    change, where = {"metadata": {"labels": {"a": "b"}}}, f"{WORKSPACES}/shop"
    reply = fleet.call("PATCH", "root:lab", where, change, kind="application/merge-patch+json")
    assert reply.json == fleet.call("GET", "root:lab", where).json
    fleet.call(
        "PATCH", "root:lab", where, {"metadata": {"finalizers": ["example.io/x"]}}, kind="application/merge-patch+json"
    )
    assert fleet.call("DELETE", "root:lab", where).json["spec"]["URL"].endswith("/clusters/root:lab:shop")


def test_a_workspace_in_one_that_was_made_so(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", user="ann")
    assert fleet.make("root:lab:shop:web", user="ann").status == 201
    assert fleet.workspace("root:lab:shop:web")["status"]["phase"] == "Ready"


def test_a_second_of_the_name_is_refused(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop")
    cluster = fleet.record("root:lab:shop").cluster
    again = fleet.make("root:lab:shop")
    assert (again.status, again.json["reason"]) == (409, "AlreadyExists")
    assert fleet.record("root:lab:shop").cluster == cluster


def test_what_git_declares_is_gits(fleet: ApiFleet) -> None:
    fleet.commit({f"{LAB}/inner/workspace.yaml": ""})
    assert fleet.make("root:lab:inner").json["reason"] == "AlreadyExists"
    refused = fleet.unmake("root:lab:inner")
    assert refused.status == 403
    assert f"edit {LAB}/inner/workspace.yaml" in refused.message


def test_where_writes_are_not_taken_none_is_made(fleet: ApiFleet) -> None:
    assert fleet.make("root:a:shop").status == 403


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"type": {"name": "nosuch", "path": "root"}}, "workspace type root:nosuch cannot be resolved"),
        ({"type": {"name": "nowhere", "path": "root"}}, "may stand under no other workspace"),
        ({"type": {"name": "organization", "path": "root"}}, "may only stand under root:root"),
        ({"cluster": "root"}, "spec.cluster can only be set by system privileged users"),
        ({"URL": "https://elsewhere"}, "spec.URL can only be set by system privileged users"),
    ],
)
def test_what_cannot_be_made_is_refused(fleet: ApiFleet, spec: Any, text: str) -> None:
    refused = fleet.make("root:lab:shop", spec)
    assert refused.status == 403
    assert text in refused.message
    assert tree.workspace_at(fleet.store, "root:lab:shop") is None


def test_a_type_that_one_may_not_use(fleet: ApiFleet) -> None:
    refused = fleet.make("root:lab:shop", {"type": {"name": "batch", "path": "root"}}, user="ann")
    unknown = fleet.make("root:lab:shop", {"type": {"name": "nosuch", "path": "root"}}, user="ann")
    text = "unable to use workspace type root:{}: missing verb='use' permission on workspacetype"
    assert (refused.status, unknown.status) == (403, 403)
    assert text.format("batch") in refused.message
    assert text.format("nosuch") in unknown.message


def test_a_type_may_be_named_by_its_logical_cluster(fleet: ApiFleet) -> None:
    """As programs do that know the type by the object alone."""
    cluster = fleet.record("root:lab").cluster
    kind = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "gold"}}
    assert fleet.call("POST", "root:lab", "/apis/tenancy.kcp.io/v1alpha1/workspacetypes", kind).status == 201
    said = {"type": {"name": "gold", "path": cluster}}
    refused = fleet.make("root:lab:shop", said, user="ann")
    assert (refused.status, "root:lab" in refused.message) == (403, False)
    assert f"unable to use workspace type {cluster}:gold" in refused.message
    assert fleet.make("root:lab:shop", said).status == 201
    assert fleet.workspace("root:lab:shop")["spec"]["type"] == said["type"], "as it was sent"
    assert fleet.record("root:lab:shop").type == "root:lab:gold"


def test_what_its_type_binds_is_there(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", {"type": {"name": "batch", "path": "root"}})
    [found] = fleet.call("GET", "root:lab:shop", "/apis/apis.kcp.io/v1alpha1/apibindings").json["items"]
    assert found["status"]["phase"] == "Bound"
    assert fleet.call("GET", "root:lab:shop", "/apis/apps/v1/namespaces/default/deployments").status == 200
    assert ("root:compute", "kubernetes") in fleet.listed()["root:lab:shop"]


def test_a_type_with_all_of_kubernetes(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", {"type": {"name": "kube-compat", "path": "root"}})
    names = {n["metadata"]["name"] for n in fleet.call("GET", "root:lab:shop", "/api/v1/namespaces").json["items"]}
    assert names == {"default", "kube-system", "kube-public", "kube-node-lease"}
    assert fleet.call("GET", "root:lab:shop", "/apis/apps/v1/namespaces/default/deployments").status == 200


def test_no_shard_takes_it_before_one_does(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", {"location": {"selector": {"matchLabels": {"region": "eu"}}}})
    workspace = fleet.workspace("root:lab:shop")
    assert workspace["status"]["phase"] == "Scheduling"
    assert condition(workspace, "WorkspaceScheduled") == ("False", "Unschedulable")
    assert tree.workspace_at(fleet.store, "root:lab:shop") is None
    assert fleet.unmake("root:lab:shop").status == 200
    assert fleet.call("GET", "root:lab", f"{WORKSPACES}/shop").status == 404


SHARD = "/apis/core.kcp.io/v1alpha1/shards/root"
MERGE = "application/merge-patch+json"


@pytest.fixture
def open_fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    """One in which all writes go to the store, root's too."""
    made = ApiFleet(tmp_path / "fleet")
    said = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\nspec: {writes: Store}\n"
    made.begin({"treeplane.yaml": said})
    made.store.write(tree.put_fleet(replace(tree.fleet(made.store), url="https://fleet"))).result()
    yield made
    made.close()


def test_the_shard_is_labelled_where_workspaces_are_made(open_fleet: ApiFleet) -> None:
    fleet = open_fleet
    eu = {"location": {"selector": {"matchLabels": {"region": "eu"}}}}
    shard = fleet.call("GET", "root", SHARD).json
    shard["metadata"]["labels"]["region"] = "eu"
    assert fleet.call("PUT", "root", SHARD, shard).status == 200
    fleet.make("root:shop", eu)
    assert fleet.workspace("root:shop")["status"]["phase"] == "Ready"
    none = {"metadata": {"annotations": {"experimental.core.kcp.io/unschedulable": "true"}}}
    assert fleet.call("PATCH", "root", SHARD, none, kind=MERGE).status == 200
    fleet.make("root:late")
    assert condition(fleet.workspace("root:late"), "WorkspaceScheduled") == ("False", "Unschedulable")
    # What git declares is judged by what git says; and its commits leave the labels.
    fleet.commit({"workspaces/root/c/workspace.yaml": "", "workspaces/root/extra.yaml": configmap("extra")})
    assert fleet.held() == {}
    assert fleet.get("root", "shards.core.kcp.io", "root", "")["metadata"]["labels"] == {"name": "root", "region": "eu"}


@pytest.mark.parametrize(
    ("method", "change"), [("PATCH", {"spec": {"baseURL": "https://elsewhere"}}), ("DELETE", None), ("POST", None)]
)
def test_nothing_else_of_shards_is_written(open_fleet: ApiFleet, method: str, change: Any) -> None:
    made = {"apiVersion": "core.kcp.io/v1alpha1", "kind": "Shard", "metadata": {"name": "eu"}, "spec": {}}
    path, body = (SHARD.rpartition("/")[0], made) if method == "POST" else (SHARD, change or {})
    refused = open_fleet.call(method, "root", path, body, kind=MERGE if method == "PATCH" else "application/json")
    assert refused.status == 403, refused.message


# -- what the server says of it


@pytest.mark.parametrize("field", ["cluster", "URL"])
def test_where_it_is_cannot_be_changed(fleet: ApiFleet, field: str) -> None:
    fleet.make("root:lab:shop")
    before = fleet.workspace("root:lab:shop")
    reply = fleet.call("PATCH", "root:lab", f"{WORKSPACES}/shop", {"spec": {field: "root"}},
                       kind="application/merge-patch+json")  # fmt: skip
    assert reply.status == (422 if field == "cluster" else 200)
    assert fleet.workspace("root:lab:shop")["spec"] == before["spec"]


def test_its_owner_and_its_finalizer_stay(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", user="ann")
    change = {"metadata": {"finalizers": [], "annotations": {"experimental.tenancy.kcp.io/owner": '{"username":"x"}'}}}
    reply = fleet.call(
        "PATCH", "root:lab", f"{WORKSPACES}/shop", change, user="ann", kind="application/merge-patch+json"
    )
    assert reply.status == 200
    metadata = fleet.workspace("root:lab:shop")["metadata"]
    assert metadata["finalizers"] == ["core.kcp.io/logicalcluster"]
    assert metadata["annotations"]["experimental.tenancy.kcp.io/owner"] == '{"username":"ann"}'


def test_its_status_is_the_servers(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop")
    change = {"status": {"phase": "Scheduling"}}
    reply = fleet.call("PATCH", "root:lab", f"{WORKSPACES}/shop/status", change, kind="application/merge-patch+json")
    assert reply.status == 403


# -- its end


def rows(fleet: ApiFleet, text: str) -> list[str]:
    """Rows of all tables, but of those who follow the log, whose keys name something."""
    found = [f"{table}/{row.key}" for table in Table for row in fleet.store.scan_rows(table)]
    return [each for each in found if text in each and not each.startswith("checkpoints")]


def test_a_deletion_leaves_nothing(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", {"type": {"name": "batch", "path": "root"}}, user="admin")
    fleet.make("root:lab:shop:web")
    before = [fleet.record(path).cluster for path in ("root:lab:shop", "root:lab:shop:web")]
    assert fleet.unmake("root:lab:shop").status in (200, 202)
    for cluster in before:
        assert not list(fleet.store.keys(cluster))
        assert not rows(fleet, cluster)
    assert not rows(fleet, "root:lab:shop")
    assert fleet.call("GET", "root:lab", f"{WORKSPACES}/shop").status == 404
    assert fleet.call("GET", "root:lab:shop", MAPS, user="bob").status == 403


def test_it_waits_for_finalizers_and_says_so(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", user="ann")
    fleet.make("root:lab:shop:web", user="ann")
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["example.io/hold"]}}
    assert fleet.call("POST", "root:lab:shop:web", MAPS, held, user="ann").status == 201
    fleet.unmake("root:lab:shop", user="ann")
    for path in ("root:lab:shop", "root:lab:shop:web"):
        workspace = fleet.workspace(path)
        assert workspace["status"]["phase"] == "Deleting"
        assert condition(workspace, "WorkspaceContentDeleted") == ("False", "SomeFinalizersRemain")
    assert fleet.call("GET", "root:lab:shop:web", f"{MAPS}/a", user="ann").status == 200
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}
    assert fleet.call("POST", "root:lab:shop:web", MAPS, other, user="ann").status == 403
    assert fleet.make("root:lab:shop:other", user="ann").status == 403
    let_go = {"metadata": {"finalizers": None}}
    kind = "application/merge-patch+json"
    assert fleet.call("PATCH", "root:lab:shop:web", f"{MAPS}/a", let_go, user="ann", kind=kind).status == 200
    fleet.settle()
    assert not rows(fleet, "root:lab:shop")


LC = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
MERGE = "application/merge-patch+json"


@pytest.mark.parametrize("user", ["ann", ADMIN])
def test_whoever_may_write_its_logical_cluster_may_hold_it(fleet: ApiFleet, user: str) -> None:
    fleet.make("root:lab:shop", user="ann")
    held = {"metadata": {"finalizers": ["example.com/test"]}}
    assert fleet.call("PATCH", "root:lab:shop", LC, held, user=user, kind=MERGE).status == 200
    fleet.unmake("root:lab:shop", user="ann")
    cluster = fleet.call("GET", "root:lab:shop", LC, user="ann").json
    assert cluster["metadata"]["deletionTimestamp"]
    assert cluster["metadata"]["finalizers"] == ["example.com/test"]
    workspace = fleet.workspace("root:lab:shop")
    assert "core.kcp.io/logicalcluster" in workspace["metadata"]["finalizers"]
    assert condition(workspace, "WorkspaceContentDeleted")[0] == "True"
    let_go = {"metadata": {"finalizers": None}}
    assert fleet.call("PATCH", "root:lab:shop", LC, let_go, user=user, kind=MERGE).status == 200
    fleet.settle()
    assert not rows(fleet, "root:lab:shop")


def test_what_a_logical_cluster_is_cannot_be_changed(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop", user="ann")
    changed = fleet.call("PATCH", "root:lab:shop", LC, {"spec": {"owner": {"name": "x"}}}, user="ann", kind=MERGE)
    assert (changed.status, "spec.owner is immutable" in changed.message) == (422, True)
    assert fleet.call("DELETE", "root:lab:shop", LC, user="ann").status == 403
    declared = fleet.call("PATCH", "root:lab", LC, {"metadata": {"labels": {"a": "b"}}}, kind=MERGE)
    assert declared.status == 403


def test_one_of_the_same_name_is_another(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop")
    before = fleet.record("root:lab:shop").cluster
    fleet.unmake("root:lab:shop")
    fleet.make("root:lab:shop")
    assert fleet.record("root:lab:shop").cluster != before


def test_one_that_goes_before_it_came(fleet: ApiFleet) -> None:
    body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "shop"}}
    assert fleet.call("POST", "root:lab", WORKSPACES, body).status == 201
    assert fleet.call("DELETE", "root:lab", f"{WORKSPACES}/shop").status in (200, 202)
    fleet.settle()
    assert fleet.call("GET", "root:lab", f"{WORKSPACES}/shop").status == 404
    assert tree.workspace_at(fleet.store, "root:lab:shop") is None


# -- beside git


def test_a_directory_cannot_take_its_place_and_has_it_when_it_has_gone(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop")
    cluster = fleet.record("root:lab:shop").cluster
    fleet.commit(
        {f"{LAB}/shop/workspace.yaml": "", f"{LAB}/shop/a.yaml": configmap(), f"{LAB}/shop/in/workspace.yaml": ""}
    )
    [text] = fleet.held()["root:lab:shop"]
    assert text.startswith(f"{LAB}/shop: workspace root:lab:shop was made through the API")
    assert (fleet.record("root:lab:shop").cluster, fleet.data("root:lab:shop")) == (cluster, None)
    assert condition(fleet.workspace("root:lab:shop"), "CommitApplied") == ("False", "ContentInvalid")
    assert fleet.workspace("root:lab:shop")["status"]["phase"] == "Ready"
    fleet.unmake("root:lab:shop")
    assert fleet.record("root:lab:shop").cluster != cluster
    assert fleet.data("root:lab:shop") == {"a": "b"}
    assert fleet.record("root:lab:shop:in").served
    assert not fleet.held()


def test_a_directory_that_goes_again_says_nothing_any_more(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop")
    before = fleet.workspace("root:lab:shop")
    fleet.commit({f"{LAB}/shop/workspace.yaml": ""})
    fleet.commit({f"{LAB}/shop/workspace.yaml": None})
    assert not fleet.held()
    assert fleet.workspace("root:lab:shop")["status"] == before["status"]


def test_it_goes_with_the_directory_that_it_stands_in(fleet: ApiFleet) -> None:
    fleet.make("root:lab:shop")
    fleet.make("root:lab:shop:web")
    gone = {f"{LAB}/workspace.yaml": None, f"{LAB}/member.yaml": None}
    fleet.delete(gone)
    fleet.settle()
    assert not rows(fleet, "root:lab")
    assert not fleet.held()


def test_the_status_branch_knows_nothing_of_it(fleet: ApiFleet) -> None:
    fleet.settle()
    fleet.publish()
    before = fleet.recorded()
    fleet.make("root:lab:shop", {"type": {"name": "batch", "path": "root"}})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["example.io/hold"]}}
    fleet.call("POST", "root:lab:shop", MAPS, body)
    fleet.unmake("root:lab:shop")
    fleet.publish()
    after = fleet.recorded()
    assert before is not None and after is not None
    # That its provider had a consumer for a while is the provider's to tell: its slice turned ready and back.
    told = {change.path for change in difference(fleet.mirror.repository, before.tree, after.tree)}
    slices = "workspaces/root/compute/_status/_/apiexportendpointslices.apis.kcp.io/kubernetes.yaml"
    assert told <= {"fleet.yaml", slices}
