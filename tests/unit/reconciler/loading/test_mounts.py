"""Mounts: workspaces that are served where an object of their parent says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import WORKSPACES, ApiFleet, Reply
from support.loadedfleet import A, B, configmap
from support.recoveries import Another, assert_recovers
from support.widgets import crd

from apiserver.registry import tree

Object = dict[str, Any]

URL = "https://fleet.example.org"
M = "workspaces/root/m"
MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.io/v1/widgets"
PATCH = "application/merge-patch+json"
REF = {"apiVersion": "example.io/v1", "kind": "Widget", "name": "w"}
MOUNT = json.dumps({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": {"mount": {"ref": REF}}})


def access(user: str, *rules: Object) -> dict[str, str]:
    """`user` may enter, and what the rules say."""
    entering = {"nonResourceURLs": ["/"], "verbs": ["access"]}
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": user}, "rules": [entering, *rules]}
    subjects = [{"apiGroup": group, "kind": "User", "name": user}]
    binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": user},
               "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user}, "subjects": subjects}  # fmt: skip
    return {f"{user}.json": json.dumps(role), f"{user}-b.json": json.dumps(binding)}


READ = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    """root:m is a mount of a Widget. ann may read root:a, bob may enter root."""
    made = ApiFleet(tmp_path / "fleet")
    definition = json.loads(crd())
    definition["spec"]["scope"] = "Cluster"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for version in definition["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"] = schema
    files = {f"{A}/{name}": text for name, text in access("ann", READ).items()}
    files |= {f"workspaces/root/{name}": text for name, text in access("bob").items()}
    widget = {"apiVersion": "example.io/v1", "kind": "Widget",
              "metadata": {"name": "w", "annotations": {"experimental.tenancy.kcp.io/is-mount": "true"}}}  # fmt: skip
    files |= {"workspaces/root/crd.json": json.dumps(definition), "workspaces/root/w.json": json.dumps(widget)}
    made.begin({**files, f"{M}/workspace.json": MOUNT})
    made.store.write(tree.put_fleet(replace(made.fleet(), url=URL))).result()
    yield made
    made.close()


def tell(fleet: ApiFleet, url: str | None = f"{URL}/clusters/root:a", phase: str = "Ready") -> None:
    """As whoever keeps the object."""

    def change(obj: Object) -> None:
        obj["status"] = {"URL": url, "phase": phase}

    fleet.update(fleet.key("root", "widgets.example.io", "w", ""), change)
    fleet.settle()


def get(fleet: ApiFleet, user: str, rest: str = f"{MAPS}/app", path: str = "root:m") -> Reply:
    return fleet.call("GET", path, rest, user=user)


def told(fleet: ApiFleet) -> tuple[str, str, str]:
    found = fleet.workspace("root:m")
    condition = fleet.condition(found, "WorkspaceMountReady")
    return found["status"]["phase"], condition["status"], condition["reason"]


def test_a_mount_of_a_workspace_is_that_workspace(fleet: ApiFleet) -> None:
    assert fleet.held() == {}
    tell(fleet)
    found = get(fleet, "ann")
    assert (found.status, found.json["data"]) == (200, {"a": "b"})
    assert found == get(fleet, "ann", path="root:a")
    assert get(fleet, "ann", "/api/v1").status == 200
    assert told(fleet) == ("Ready", "True", "WorkspaceMountReady")


def test_it_has_nothing_of_its_own(fleet: ApiFleet) -> None:
    cluster = fleet.record("root:m").cluster
    assert [key for key in fleet.everything() if key.cluster == cluster] == []


@pytest.mark.parametrize("user", ["bob", "eve"])
def test_the_workspace_that_is_mounted_says_who_may(fleet: ApiFleet, user: str) -> None:
    """No right of the parent, or of whoever keeps the object, counts there."""
    tell(fleet)
    for rest in (f"{MAPS}/app", MAPS, "/api", "/version"):
        assert get(fleet, user, rest) == get(fleet, user, rest, path="root:a")
    assert get(fleet, user).status == 403
    written = fleet.call("POST", "root:m", MAPS, {"apiVersion": "v1", "kind": "ConfigMap"}, user="bob")
    assert written.status == 403


def test_a_mount_that_is_not_ready_is_not_available(fleet: ApiFleet) -> None:
    fleet.settle()
    assert told(fleet) == ("Unavailable", "False", "MountObjectNotReady")
    for phase in ("Initializing", "Unknown"):
        tell(fleet, phase=phase)
        assert told(fleet) == ("Unavailable", "False", "MountObjectNotReady")
        found = get(fleet, "bob")
        assert (found.status, phase in found.message) == (503, True)
        assert get(fleet, "admin").status == 503


def test_who_may_not_enter_the_parent_is_told_nothing(fleet: ApiFleet) -> None:
    for user in ("eve", "ann"):
        assert get(fleet, user) == get(fleet, user, path="root:nowhere")
    tell(fleet, "https://elsewhere.example.org/clusters/root:a")
    assert get(fleet, "eve") == get(fleet, "eve", path="root:nowhere")


def test_without_its_object_it_is_not_found(fleet: ApiFleet) -> None:
    tell(fleet)
    fleet.update(fleet.key("root", "widgets.example.io", "w", ""), lambda obj: obj["metadata"]["annotations"].clear())
    fleet.settle()
    assert told(fleet) == ("Unavailable", "False", "MountObjectNotFound")
    assert get(fleet, "bob").status == 503


@pytest.mark.parametrize(
    "url",
    [
        "https://elsewhere.example.org/clusters/root:a",
        f"{URL}.evil.example.org/clusters/root:a",
        f"{URL}@evil.example.org/clusters/root:a",
        f"{URL}/clusters/root:a/api",
        f"{URL}/services/apiexport/root:a",
        f"{URL}/targets/root:edge",
        "http://fleet.example.org/clusters/root:a",
    ],
)
def test_other_addresses_are_not_supported_by_name(fleet: ApiFleet, url: str) -> None:
    tell(fleet, url)
    found = get(fleet, "bob")
    assert (found.status, found.json["reason"]) == (501, "NotImplemented")
    assert "root:m" in found.message and "elsewhere" not in found.message
    assert get(fleet, "ann").status == 403


def test_nothing_goes_in_circles(fleet: ApiFleet) -> None:
    other = json.loads(MOUNT)
    fleet.commit({"workspaces/root/n/workspace.json": json.dumps(other)})
    for target in ("root:m", "root:n", fleet.record("root:m").cluster):
        tell(fleet, f"{URL}/clusters/{target}")
        for user in ("ann", "bob", "eve"):
            assert get(fleet, user) == get(fleet, user, path="root:nowhere")


@pytest.mark.parametrize("name", ["root:nowhere", "*", "system:admin", "0123456789abcdef"])
def test_whoever_keeps_the_object_does_not_learn_which_workspaces_there_are(fleet: ApiFleet, name: str) -> None:
    tell(fleet, f"{URL}/clusters/root:b")
    there = get(fleet, "bob")
    tell(fleet, f"{URL}/clusters/{name}")
    assert get(fleet, "bob") == there
    assert there.status == 403


def test_it_comes_back_from_the_status_branch(fleet: ApiFleet, another: Another) -> None:
    tell(fleet)
    assert_recovers(fleet, another)
    tell(fleet, phase="Lost")
    assert_recovers(fleet, another, "again")


def test_commits_leave_its_phase_alone(fleet: ApiFleet) -> None:
    tell(fleet)
    labelled = {**json.loads(MOUNT), "metadata": {"labels": {"a": "b"}}}
    fleet.commit({f"{M}/workspace.json": json.dumps(labelled)})
    assert told(fleet)[0] == "Ready"
    assert fleet.workspace("root:m")["metadata"]["labels"]["a"] == "b"


@pytest.mark.parametrize("file", [f"{M}/app.yaml", f"{M}/child/workspace.yaml"])
def test_nothing_stands_in_a_mount_or_below_it(fleet: ApiFleet, file: str) -> None:
    fleet.commit({file: configmap() if file.endswith("app.yaml") else ""})
    [(path, [error])] = fleet.held().items()
    assert path == ("root:m" if file.endswith("app.yaml") else "root:m:child")
    assert file.rpartition("/")[0] in error and "is a mount" in error
    fleet.commit({file: None})
    assert fleet.held() == {}


def test_no_program_of_its_type_has_to_act_on_it(fleet: ApiFleet, another: Another) -> None:
    spec = {
        "initializer": True,
        "terminator": True,
        "defaultAPIBindings": [{"path": "root:compute", "export": "kubernetes"}],
    }
    kind = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": "busy"},
        "spec": spec,
    }
    of_type = json.loads(MOUNT)
    of_type["spec"]["type"] = {"name": "busy", "path": "root"}
    fleet.commit(
        {"workspaces/root/busy.json": json.dumps(kind), "workspaces/root/n/workspace.json": json.dumps(of_type)}
    )
    tell(fleet)
    assert fleet.held() == {}
    assert fleet.workspace("root:n")["status"]["phase"] == "Ready"
    assert get(fleet, "ann", path="root:n").status == 200
    assert_recovers(fleet, another)


def test_it_goes_with_its_directory(fleet: ApiFleet, another: Another) -> None:
    tell(fleet)
    fleet.commit({M: None})
    assert fleet.held() == {}
    assert fleet.find("root", "workspaces.tenancy.kcp.io", "m", "") is None
    assert get(fleet, "ann") == get(fleet, "ann", path="root:nowhere")
    assert_recovers(fleet, another)


def test_what_is_said_of_a_logical_cluster_is_not_said_of_a_mount(fleet: ApiFleet) -> None:
    marked = {**json.loads(MOUNT), "metadata": {"annotations": {"core.kcp.io/inactive": "true"}}}
    fleet.commit({f"{M}/workspace.json": json.dumps(marked)})
    [error] = fleet.held()["root:m"]
    assert "core.kcp.io/inactive is said of a LogicalCluster, which a mount does not have" in error


def test_a_workspace_is_a_mount_for_good_or_never(fleet: ApiFleet) -> None:
    for changed in ({f"{M}/workspace.json": "{}"}, {f"{M}/workspace.json": MOUNT.replace('"w"', '"x"')},
                    {f"{B}/workspace.yaml": MOUNT, f"{B}/app.yaml": None}):  # fmt: skip
        fleet.commit(changed)
        assert any("mount is immutable" in text for texts in fleet.held().values() for text in texts)
        fleet.commit({f"{M}/workspace.json": MOUNT, f"{B}/workspace.yaml": "", f"{B}/app.yaml": configmap()})
        assert fleet.held() == {}


def test_through_the_api_it_is_declared_in_git(fleet: ApiFleet) -> None:
    fleet.commit({"treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\n"
                                    "spec: {writes: Store}\n"})  # fmt: skip
    found = fleet.make("root:new", {"mount": {"ref": REF}})
    assert (found.status, "a mount is declared in git" in found.message) == (403, True)
    fleet.make("root:new")
    change = {"spec": {"mount": {"ref": REF}}}
    assert fleet.call("PATCH", "root", f"{WORKSPACES}/new", change, kind=PATCH).status == 422
