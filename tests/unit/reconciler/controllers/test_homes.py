"""Home workspaces: whose they are, who may have one, and that nobody gets another's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import WORKSPACES, ApiFleet

from apiserver.model import paths
from apiserver.model.identity import home_cluster_name
from apiserver.registry import tree

HOME = f"{WORKSPACES}/~"
MAPS = "/api/v1/namespaces/default/configmaps"
RULES = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules:
- {{nonResourceURLs: [/], verbs: [access]}}
- {{apiGroups: [tenancy.kcp.io], resources: [workspaces], verbs: [get]}}
- {{apiGroups: [tenancy.kcp.io], resources: [workspaces], resourceNames: ["~"], verbs: [{verb}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]
"""
USERS = {"ann": "create", "bob@example.com": "create", "a": "create", "'a:b'": "create", "reader": "get"}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    """Everybody but `reader` may have a home; nobody may write in root."""
    made = ApiFleet(tmp_path / "fleet")
    roles = (RULES.format(name=f"r{n}", user=user, verb=verb) for n, (user, verb) in enumerate(USERS.items()))
    made.begin({"workspaces/root/users.yaml": "---\n".join(roles)})
    assert not made.held()
    yield made
    made.close()


def home(fleet: ApiFleet, user: str) -> Any:
    first = fleet.call("GET", "root", HOME, user=user)
    assert first.status == 429, first.message
    fleet.settle()
    return fleet.call("GET", "root", HOME, user=user)


def test_a_home_is_made_when_it_is_asked_for(fleet: ApiFleet) -> None:
    found = home(fleet, "ann")
    assert (found.status, found.json["status"]["phase"]) == (200, "Ready")
    assert found.json["spec"]["cluster"] == home_cluster_name("ann")
    assert found.json["spec"]["type"] == {"name": "home", "path": "root"}
    assert found.json["spec"]["URL"].endswith("/clusters/user:ann")
    cluster = fleet.call("GET", "user:ann", "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster", user="ann").json
    assert cluster["metadata"]["annotations"]["kcp.io/path"] == "user:ann"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert fleet.call("POST", "user:ann", MAPS, body, user="ann").status == 201
    assert fleet.call("GET", home_cluster_name("ann"), f"{MAPS}/a", user="ann").status == 200


def test_workspaces_stand_in_a_home(fleet: ApiFleet) -> None:
    home(fleet, "ann")
    assert fleet.make("user:ann:mine", user="ann").status == 201
    assert fleet.record("user:ann:mine").parent == "user:ann"
    assert fleet.call("GET", "user:ann:mine", MAPS, user="ann").status == 200
    assert fleet.unmake("user:ann:mine", user="ann").status == 200
    assert tree.workspace_at(fleet.store, "user:ann:mine") is None


CLUSTER = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
MERGE = "application/merge-patch+json"


@pytest.mark.parametrize("user", ["ann", "admin"])
def test_a_home_goes_with_its_logical_cluster(fleet: ApiFleet, user: str) -> None:
    home(fleet, "ann")
    assert fleet.call("GET", "user:ann", CLUSTER, user="ann").json["spec"]["directlyDeletable"] is True
    assert fleet.make("user:ann:mine", user="ann").status == 201
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.io/f"]}}
    assert fleet.call("POST", "user:ann", MAPS, held, user="ann").status == 201
    fleet.settle()
    assert fleet.call("DELETE", "user:ann", CLUSTER, user=user).status == 200
    fleet.settle()
    left = fleet.call("GET", "user:ann", CLUSTER, user="ann").json
    [told] = [each for each in left["status"]["conditions"] if each["type"] == "WorkspaceContentDeleted"]
    assert (left["status"]["phase"], told["status"]) == ("Deleting", "False")
    assert tree.workspace_at(fleet.store, "user:ann:mine") is None
    assert fleet.call("GET", "root", HOME, user="ann").json["status"]["phase"] == "Deleting"
    gone = {"metadata": {"finalizers": None}}
    assert fleet.call("PATCH", "user:ann", f"{MAPS}/held", gone, user="ann", kind=MERGE).status == 200
    fleet.settle()
    assert tree.workspace_at(fleet.store, "user:ann") is None
    assert [*fleet.store.keys(home_cluster_name("ann"))] == []
    again = home(fleet, "ann")
    assert (again.status, again.json["status"]["phase"]) == (200, "Ready")
    assert fleet.call("GET", "user:ann", f"{MAPS}/held", user="ann").status == 404


def test_an_empty_home_goes_at_once(fleet: ApiFleet) -> None:
    home(fleet, "ann")
    assert fleet.call("DELETE", "user:ann", CLUSTER, user="ann").status == 200
    fleet.settle()
    assert tree.workspace_at(fleet.store, "user:ann") is None
    assert [*fleet.store.keys(home_cluster_name("ann"))] == []


def test_no_other_logical_cluster_is_deleted_so(fleet: ApiFleet) -> None:
    home(fleet, "ann")
    fleet.make("user:ann:mine", user="ann")
    for path, user in (("user:ann:mine", "ann"), ("user:ann:mine", "admin"), ("root:a", "admin")):
        assert fleet.call("DELETE", path, CLUSTER, user=user).status == 403
    assert fleet.call("DELETE", "user:ann", CLUSTER, user="bob@example.com").status == 403
    fleet.settle()
    assert fleet.call("GET", "user:ann:mine", CLUSTER, user="ann").json["status"]["phase"] == "Ready"


def test_a_home_is_its_users_alone(fleet: ApiFleet) -> None:
    home(fleet, "ann")
    home(fleet, "bob@example.com")
    mine = fleet.call("GET", "user:ann", MAPS, user="bob@example.com")
    nothing = fleet.call("GET", "user:nobody", MAPS, user="bob@example.com")
    assert (mine.status, mine.body) == (nothing.status, nothing.body)
    assert mine.status == 403


def test_nobodys_home_is_in_another_users(fleet: ApiFleet) -> None:
    """A user whose name looks like a path below another's."""
    home(fleet, "a")
    assert fleet.make("user:a:b", user="a").status == 201
    assert home(fleet, "a:b").json["spec"]["cluster"] != fleet.record("user:a:b").cluster
    assert fleet.call("GET", "user:a:b", MAPS, user="a:b").status == 403


def test_who_may_not_have_one_is_told_so(fleet: ApiFleet) -> None:
    denied = fleet.call("GET", "root", HOME, user="reader")
    assert denied.status == 403
    assert denied.message == (
        'workspaces.tenancy.kcp.io "~" is forbidden: User "reader" cannot create resource "workspaces" in API group '
        '"tenancy.kcp.io" at the cluster scope: workspace access not permitted'
    )
    fleet.settle()
    assert tree.workspace_at(fleet.store, "user:reader") is None


def test_it_is_asked_for_in_root_alone(fleet: ApiFleet) -> None:
    assert fleet.call("GET", "root:a", HOME).status == 404


def test_nothing_of_a_home_is_recorded(fleet: ApiFleet) -> None:
    fleet.settle()
    fleet.publish()
    before = fleet.recorded()
    home(fleet, "ann")
    fleet.publish()
    after = fleet.recorded()
    assert before is not None and after is not None
    assert before.tree == after.tree


ODD = ("a:b", "a~3Ab", "x" * 300, "x" * 299 + ":", "ä", "A", "a", "a/b", "%", "")


@pytest.mark.parametrize("one", ODD)
def test_paths_of_homes_differ_and_can_be_asked_for(one: str) -> None:
    others = {paths.home(each) for each in ODD if each != one}
    found = paths.home(one)
    assert found not in others
    assert found.count(":") == 1 and "/" not in found and "%" not in found
    assert len(found) < 400 and paths.parent(found) is None


PROGRAMMED = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: home}
spec: {initializer: true, terminator: true}
"""
STATUS = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster/status"


def test_programs_of_its_type_act_on_a_home(fleet: ApiFleet) -> None:
    fleet.commit({"workspaces/root/home.yaml": PROGRAMMED})
    assert home(fleet, "ann").status == 429, "it is initialized first"
    cluster = fleet.record("user:ann").cluster

    def done(view: str, field: str) -> int:
        url = f"/services/{view}/root:home/clusters/{cluster}{STATUS}"
        reply = fleet.ask("PATCH", url, {"status": {field: []}}, kind="application/merge-patch+json")
        fleet.settle()
        return reply.status

    assert done("initializingworkspaces", "initializers") == 200
    found = fleet.call("GET", "root", HOME, user="ann")
    assert (found.status, found.json["status"]["phase"]) == (200, "Ready")
    own = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
    assert fleet.call("DELETE", "user:ann", own).status == 200
    fleet.settle()
    assert fleet.call("GET", "root", HOME, user="ann").json["status"]["phase"] == "Terminating"
    assert done("terminatingworkspaces", "terminators") == 200
    assert tree.workspace_at(fleet.store, "user:ann") is None


def test_a_home_that_comes_again_is_another_one(fleet: ApiFleet) -> None:
    own = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
    home(fleet, "ann")
    before = fleet.call("GET", "user:ann", own).json["metadata"]["uid"]
    assert fleet.call("DELETE", "user:ann", own).status == 200
    fleet.settle()
    home(fleet, "ann")
    assert fleet.call("GET", "user:ann", own).json["metadata"]["uid"] != before
