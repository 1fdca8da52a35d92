"""Workspaces that are marked inactive: in git by the parent's workspace.yaml, through the API by administrators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import ApiFleet, Reply
from support.loadedfleet import A, configmap
from support.recoveries import Another, assert_recovers

INACTIVE = "core.kcp.io/inactive"
CLUSTER = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
MAPS = "/api/v1/namespaces/default/configmaps"
PATCH = "application/merge-patch+json"
HEAD = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
SAID = f"{HEAD}metadata: {{annotations: {{{INACTIVE}: 'true'}}}}\n"
OWNER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: owner}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    """ann owns root:a, whatever its writes are."""
    made = ApiFleet(tmp_path / "fleet")
    made.begin({f"{A}/owner.yaml": OWNER})
    yield made
    made.close()


def mark(fleet: ApiFleet, value: str | None, user: str = "admin", key: str = INACTIVE) -> Reply:
    body = {"metadata": {"annotations": {key: value}}}
    reply = fleet.call("PATCH", "root:a", CLUSTER, body, user=user, kind=PATCH)
    fleet.settle()
    return reply


def phases(fleet: ApiFleet) -> tuple[str, str]:
    cluster = fleet.get("root:a", "logicalclusters.core.kcp.io", "cluster", "")
    return fleet.workspace("root:a")["status"]["phase"], cluster["status"]["phase"]


def answers(fleet: ApiFleet, rest: str = MAPS, user: str = "ann", path: str = "root:a") -> int:
    return fleet.call("GET", path, rest, user=user).status


def test_an_inactive_workspace_answers_nothing(fleet: ApiFleet) -> None:
    assert mark(fleet, "true").status == 200
    for user in ("ann", "admin"):
        for rest in (MAPS, "/api", "/apis", "/version", f"{MAPS}/app", "/apis/apps/v1"):
            found = fleet.call("GET", "root:a", rest, user=user)
            assert (found.status, found.message) == (403, "logical cluster is marked inactive"), rest
        written = fleet.call("POST", "root:a", MAPS, {"apiVersion": "v1", "kind": "ConfigMap"}, user=user)
        assert (written.status, written.message) == (403, "logical cluster is marked inactive")
    assert phases(fleet) == ("Inactive", "Inactive")
    assert answers(fleet, user="admin", path="root:b") == answers(fleet, user="admin", path="root") == 200


def test_but_what_says_so(fleet: ApiFleet) -> None:
    mark(fleet, "true")
    found = fleet.call("GET", "root:a", CLUSTER, user="ann")
    assert (found.status, found.json["metadata"]["annotations"][INACTIVE]) == (200, "true")
    assert answers(fleet, "/openapi/v3") == answers(fleet, "/openapi/v2") == 200


def test_an_outsider_is_told_what_they_always_are(fleet: ApiFleet) -> None:
    before = fleet.call("GET", "root:a", MAPS, user="eve")
    mark(fleet, "true")
    assert fleet.call("GET", "root:a", MAPS, user="eve") == before


def test_it_answers_again_when_the_mark_goes(fleet: ApiFleet) -> None:
    for active in (None, "false"):
        mark(fleet, "true")
        assert answers(fleet) == 403
        assert mark(fleet, active).status == 200
        assert (answers(fleet), phases(fleet)) == (200, ("Ready", "Ready"))


def test_its_owner_neither_sets_nor_takes_the_mark(fleet: ApiFleet) -> None:
    for value in ("true", None):
        refused = mark(fleet, "true" if value else "false", user="ann")
        assert refused.status == 403
        mark(fleet, value)
    assert answers(fleet) == 200


def test_nothing_else_of_a_logical_cluster_is_written(fleet: ApiFleet) -> None:
    for change in ({"spec": {"directlyDeletable": True}}, {"metadata": {"labels": {"a": "b"}}},
                   {"metadata": {"annotations": {"kcp.io/path": "root"}}}):  # fmt: skip
        assert fleet.call("PATCH", "root:a", CLUSTER, change, kind=PATCH).status in (403, 422)
    assert fleet.call("DELETE", "root:a", CLUSTER).status == 403
    assert mark(fleet, "maybe").status == 403


def test_git_says_it_in_the_parents_workspace_yaml(fleet: ApiFleet, another: Another) -> None:
    fleet.commit({f"{A}/workspace.yaml": SAID})
    assert (answers(fleet), phases(fleet)) == (403, ("Inactive", "Inactive"))
    assert_recovers(fleet, another)
    refused = mark(fleet, None)
    assert (refused.status, f"{INACTIVE} is said in {A}/workspace.yaml: edit it" in refused.message) == (403, True)
    fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    assert phases(fleet) == ("Inactive", "Inactive"), "commits are taken as ever"
    fleet.commit({f"{A}/workspace.yaml": ""})
    assert (answers(fleet), phases(fleet)) == (200, ("Ready", "Ready"))
    assert fleet.data("root:a") == {"a": "c"}


def test_a_new_workspace_may_be_inactive(fleet: ApiFleet, another: Another) -> None:
    fleet.commit({"workspaces/root/c/workspace.yaml": SAID, "workspaces/root/c/app.yaml": configmap()})
    assert fleet.held() == {}
    assert answers(fleet, path="root:c", user="admin") == 403
    assert fleet.workspace("root:c")["status"]["phase"] == "Inactive"
    assert_recovers(fleet, another)


def test_what_is_neither_true_nor_false_holds_the_workspace(fleet: ApiFleet) -> None:
    fleet.commit({f"{A}/workspace.yaml": SAID.replace("true", "maybe")})
    said = f"{A}/workspace.yaml:3: {INACTIVE} is 'maybe': it is true or false (correct it, or leave it out)"
    assert fleet.held() == {"root:a": [said]}


def test_a_commit_does_not_take_away_what_an_administrator_said(fleet: ApiFleet) -> None:
    mark(fleet, "true")
    fleet.commit({f"{A}/app.yaml": configmap(a="c"), f"{A}/workspace.yaml": f"{HEAD}metadata: {{labels: {{a: b}}}}\n"})
    assert (answers(fleet), phases(fleet)) == (403, ("Inactive", "Inactive"))


def test_a_recovery_brings_it_back(fleet: ApiFleet, another: Another) -> None:
    mark(fleet, "true")
    assert_recovers(fleet, another)
    mark(fleet, None)
    assert_recovers(fleet, another, "once more")


@pytest.mark.parametrize("writes", ["ReadOnly", "Store", "Commit"])
def test_whatever_writes_are(tmp_path: Path, writes: str) -> None:
    made: Any = ApiFleet(tmp_path / writes)
    try:
        made.begin({"treeplane.yaml": _fleet(writes)})
        head = made.repo.head
        assert mark(made, "true").status == 200
        assert (phases(made), made.repo.head) == (("Inactive", "Inactive"), head)
    finally:
        made.close()


def _fleet(writes: str) -> str:
    return f"apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {{name: test}}\nspec: {{writes: {writes}}}\n"
