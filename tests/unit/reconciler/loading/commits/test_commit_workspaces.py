"""Workspaces that are made, changed and deleted through the API where writes are commits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.apifleet import WORKSPACES, ApiFleet
from support.commitfleet import WRITES_COMMIT
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model.storagenames import WORKSPACES as STORED
from apiserver.registry import tree
from apiserver.registry.lifecycles import PHASE

MOUNT = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
MERGE = "application/merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"
SHOP = f"{A}/shop"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    made = ApiFleet(tmp_path / "fleet")
    made.begin({"treeplane.yaml": WRITES_COMMIT})
    made.serve()
    yield made
    made.close()


def test_a_workspace_becomes_a_directory(fleet: ApiFleet) -> None:
    made = fleet.make("root:a:shop", user="admin")
    assert (made.status, made.json["status"]["phase"]) == (201, "Ready"), made.message
    record = fleet.record("root:a:shop")
    assert made.json["spec"]["cluster"] == record.cluster
    assert (record.directory, record.stored) == (SHOP, False)
    files = fleet.tree()
    said = yaml.safe_load(files[f"{SHOP}/workspace.yaml"])
    assert said == {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "shop"},
        "spec": {},
    }
    admin = yaml.safe_load(
        files[f"{SHOP}/_objects/_cluster/clusterrolebindings.rbac.authorization.k8s.io/workspace-admin.yaml"]
    )
    assert admin["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "admin"}]
    assert fleet.log()[-1] == "admin: Create workspaces.tenancy.kcp.io shop in root:a"


def test_it_is_what_a_first_load_makes_of_it(fleet: ApiFleet, tmp_path: Path) -> None:
    fleet.make("root:a:shop")
    fleet.publish()
    other = ApiFleet(tmp_path / "other", repo=fleet.repo, keys=fleet.keys)
    try:
        other.load(fleet.recorded())
        ours, theirs = fleet.workspace("root:a:shop"), other.workspace("root:a:shop")
        for obj in (ours, theirs):
            for field in ("resourceVersion", "managedFields"):
                obj["metadata"].pop(field, None)
        assert ours == theirs
    finally:
        other.close()


def test_writes_into_it_are_commits_too(fleet: ApiFleet) -> None:
    fleet.make("root:a:shop")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    assert fleet.call("POST", "root:a:shop", MAPS, body).status == 201
    assert f"{SHOP}/_objects/default/configmaps/a.yaml" in fleet.tree()


def test_a_directory_of_that_name_that_only_groups_keeps_its_manifests(fleet: ApiFleet) -> None:
    fleet.commit({f"{SHOP}/grouped.yaml": configmap("grouped")})
    assert fleet.make("root:a:shop").status == 201
    assert fleet.record("root:a:shop").directory == f"{A}/_workspaces/shop"
    assert fleet.data("root:a", "grouped") == {"a": "b"}
    assert fleet.data("root:a:shop", "grouped") is None


def test_many_are_spread(fleet: ApiFleet) -> None:
    fleet.commit({f"{A}/w{n}/workspace.yaml": "" for n in range(200)})
    assert fleet.make("root:a:shop").status == 201
    directory = fleet.record("root:a:shop").directory
    assert directory.startswith(f"{A}/") and directory.count("/") == A.count("/") + 2


@pytest.mark.parametrize(
    ("spec", "code"), [({"type": {"name": "nosuch", "path": "root"}}, 403), ({"mount": {"ref": MOUNT}}, 403)]
)
def test_what_cannot_be_is_refused_and_leaves_no_commit(fleet: ApiFleet, spec: Any, code: int) -> None:
    before = fleet.repo.head
    refused = fleet.make("root:a:shop", spec)
    assert refused.status == code, refused.message
    assert fleet.repo.head == before
    assert tree.workspace_at(fleet.store, "root:a:shop") is None


def test_a_change_of_it_is_one_of_its_file(fleet: ApiFleet) -> None:
    fleet.commit({f"{SHOP}/workspace.yaml": "# ours\napiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"})
    change = {"metadata": {"labels": {"team": "x"}}}
    reply = fleet.call("PATCH", "root:a", f"{WORKSPACES}/shop", change, kind=MERGE)
    assert reply.status == 200, reply.message
    text = fleet.tree()[f"{SHOP}/workspace.yaml"]
    assert text.startswith("# ours\n")
    assert yaml.safe_load(text)["metadata"] == {"labels": {"team": "x"}}
    assert fleet.workspace("root:a:shop")["metadata"]["labels"] == {"team": "x", PHASE: "Ready"}


def test_a_change_of_one_whose_file_is_empty(fleet: ApiFleet) -> None:
    fleet.commit({f"{SHOP}/workspace.yaml": ""})
    change = {"metadata": {"labels": {"team": "x"}}}
    assert fleet.call("PATCH", "root:a", f"{WORKSPACES}/shop", change, kind=MERGE).status == 200
    said = yaml.safe_load(fleet.tree()[f"{SHOP}/workspace.yaml"])
    assert (said["kind"], said["metadata"]) == ("Workspace", {"labels": {"team": "x"}})


def test_a_deletion_takes_the_directory_with_all_that_is_in_it(fleet: ApiFleet) -> None:
    fleet.make("root:a:shop")
    fleet.make("root:a:shop:web")
    fleet.commit({f"{SHOP}/app.yaml": configmap(), f"{SHOP}/web/app.yaml": configmap()})
    cluster = fleet.record("root:a:shop").cluster
    reply = fleet.unmake("root:a:shop")
    assert reply.status == 200, reply.message
    assert not [path for path in fleet.tree() if path.startswith(SHOP)]
    assert not fleet.held()
    assert fleet.paths() >= {"root:a", "root:b"}
    assert not [path for path in fleet.paths() if path.startswith("root:a:shop")]
    assert not list(fleet.store.keys(cluster))
    assert fleet.call("GET", "root:a", f"{WORKSPACES}/shop").status == 404


def test_what_waits_for_finalizers_is_there_until_they_have_gone(fleet: ApiFleet) -> None:
    fleet.make("root:a:shop")
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["example.io/hold"]}}
    assert fleet.call("POST", "root:a:shop", MAPS, held).status == 201
    reply = fleet.unmake("root:a:shop")
    assert reply.status == 200, reply.message
    assert not [path for path in fleet.tree() if path.startswith(SHOP)]
    assert fleet.workspace("root:a:shop")["status"]["phase"] == "Deleting"
    assert fleet.make("root:a:shop").status == 409
    assert fleet.call("PATCH", "root:a:shop", f"{MAPS}/a", {"metadata": {"finalizers": None}}, kind=MERGE).status == 200
    fleet.settle()
    assert tree.workspace_at(fleet.store, "root:a:shop") is None
    assert fleet.make("root:a:shop").status == 201


def test_what_ships_is_nobodys(fleet: ApiFleet) -> None:
    reply = fleet.unmake("root:compute")
    assert reply.status == 403
    assert "Treeplane made it" in reply.message


def test_several_at_once(fleet: ApiFleet) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: fleet.call("POST", "root:a", WORKSPACES, _named(f"w{n}")), range(16)))
    assert {reply.status for reply in done} == {201}
    assert {f"root:a:w{n}" for n in range(16)} <= fleet.paths()


def _named(name: str) -> Any:
    return {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}}


def test_what_no_workspace_yaml_says_is_runtime_state_beside_it(fleet: ApiFleet, tmp_path: Path) -> None:
    """A controller holds a Workspace by a finalizer, and may own it, where writes are commits too."""
    kind = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
    made = fleet.call("POST", "root:a", WORKSPACES, {**kind, "metadata": {"generateName": "g-", "labels": {"x": "y"}}})
    assert made.status == 201, made.message
    name = made.json["metadata"]["name"]
    assert yaml.safe_load(fleet.tree()[f"{A}/{name}/workspace.yaml"])["metadata"] == {
        "name": name,
        "labels": {"x": "y"},
    }
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "app",
        "uid": fleet.get("root:a", "configmaps", "app")["metadata"]["uid"],
    }
    held = {"finalizers": ["a.io/b"], "ownerReferences": [owner]}
    made = fleet.call("POST", "root:a", WORKSPACES, {**kind, "metadata": {"name": "shop", **held}})
    assert made.status == 201, made.message
    assert "a.io/b" in made.json["metadata"]["finalizers"]
    assert yaml.safe_load(fleet.tree()[f"{SHOP}/workspace.yaml"])["metadata"] == {"name": "shop"}
    head = fleet.repo.head
    more = {"metadata": {"finalizers": ["a.io/b", "a.io/c"]}}
    assert fleet.call("PATCH", "root:a", f"{WORKSPACES}/shop", more, kind=MERGE).status == 200
    assert fleet.repo.head == head, "that is no commit"
    fleet.commit({f"{SHOP}/map.yaml": configmap("more")})

    def kept(at: LoadedFleet) -> set[str]:
        found = at.get("root:a", STORED, "shop", "")["metadata"]
        assert found["ownerReferences"] == [owner]
        return {*found["finalizers"]}

    assert kept(fleet) >= {"a.io/b", "a.io/c"}
    fleet.publish()
    other = ApiFleet(tmp_path / "other", repo=fleet.repo, keys=fleet.keys)
    try:
        other.load(fleet.recorded())
        assert kept(other) == kept(fleet)
    finally:
        other.close()
    assert fleet.unmake("root:a:shop").status == 200
    assert fleet.get("root:a", STORED, "shop", "")["metadata"]["deletionTimestamp"]
    nothing = {"metadata": {"finalizers": None}}
    assert fleet.call("PATCH", "root:a", f"{WORKSPACES}/shop", nothing, kind=MERGE).status == 200
    fleet.settle()
    assert tree.workspace_at(fleet.store, "root:a:shop") is None
