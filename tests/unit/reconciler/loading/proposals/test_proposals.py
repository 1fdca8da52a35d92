"""Writes that are proposals: what the branch has, what whoever asked is answered, and that nothing is served of it."""

from __future__ import annotations

import pytest
import yaml
from support.commitfleet import MADE, a_configmap
from support.loadedfleet import A, configmap
from support.proposalfleet import ProposalFleet

from apiserver.model.errors import StatusError

BRANCH = "treeplane/proposals/alice/root-a"
TOLD = f"proposed on branch {BRANCH}; open a pull request: https://forge/{BRANCH}"
APP = f"{A}/app.yaml"


def test_a_new_object_is_a_file_on_a_branch_and_answered_as_a_dry_run(fleet: ProposalFleet) -> None:
    dry = fleet.made("root:a", "configmaps", a_configmap(), dry=True)
    before, head = fleet.store.revision(), fleet.repo.head
    outcome = fleet.made("root:a", "configmaps", a_configmap())
    assert outcome.warnings == (TOLD,)
    assert outcome.created
    own = {"uid", "creationTimestamp", "managedFields"}
    said, would = (
        {**o.obj, "metadata": {k: v for k, v in o.obj["metadata"].items() if k not in own}} for o in (outcome, dry)
    )
    assert said == would
    assert "resourceVersion" not in outcome.obj["metadata"]
    assert fleet.find("root:a", "configmaps", "made") is None
    assert fleet.repo.head == head
    assert [c.key.resource for c in fleet.store.changes(before) if not c.key.resource.startswith("~")] == []
    assert fleet.subjects() == ["alice: Propose to create configmaps default/made in root:a"]
    assert fleet.proposed() == {
        MADE: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: default\ndata:\n  a: b\n"
    }


def test_a_dry_run_proposes_nothing(fleet: ProposalFleet) -> None:
    fleet.made("root:a", "configmaps", a_configmap(), dry=True)
    fleet.deleted("root:a", "configmaps", "app", dry=True)
    assert fleet.branches_there() == []


def test_a_change_is_made_in_its_file_and_the_object_stays(fleet: ProposalFleet) -> None:
    live = fleet.get("root:a", "configmaps", "app")
    outcome = fleet.patched("root:a", "configmaps", "app", data={"a": "c"})
    assert outcome.obj["data"] == {"a": "c"}
    assert outcome.obj["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
    assert fleet.get("root:a", "configmaps", "app") == live
    assert fleet.proposed() == {APP: configmap(a="c")}


def test_writes_of_one_user_add_up(fleet: ProposalFleet) -> None:
    """Both fields of two applies that were settled on the same served object."""
    fleet.applied("root:a", "configmaps", {**a_configmap("app", x="1")}, manager="one")
    fleet.applied("root:a", "configmaps", {**a_configmap("app", y="2")}, manager="two")
    fleet.patched("root:a", "configmaps", "app", data={"a": "z"})
    fleet.made("root:a", "configmaps", a_configmap("other"))
    found = fleet.proposed()
    assert yaml.safe_load(found.pop(APP) or "")["data"] == {"a": "z", "x": "1", "y": "2"}
    assert len(found) == 1


def test_the_same_write_again_adds_nothing(fleet: ProposalFleet) -> None:
    for _ in range(2):
        first = fleet.proposal()
        outcome = fleet.applied("root:a", "configmaps", a_configmap("app", x="1"))
        made = fleet.made("root:a", "configmaps", a_configmap())
        assert outcome.warnings == made.warnings == (TOLD,)
    assert fleet.proposal() == first
    assert len(fleet.subjects()) == 2


def test_a_new_object_that_is_sent_otherwise_is_replaced_there(fleet: ProposalFleet) -> None:
    fleet.made("root:a", "configmaps", a_configmap(a="1", b="2"))
    fleet.made("root:a", "configmaps", a_configmap(a="3"))
    [text] = fleet.proposed().values()
    assert yaml.safe_load(text or "")["data"] == {"a": "3"}


def test_a_deletion_is_proposed_and_refused_with_where(fleet: ProposalFleet) -> None:
    for _ in range(2):
        with pytest.raises(StatusError) as told:
            fleet.deleted("root:a", "configmaps", "app")
        assert (told.value.code, told.value.reason) == (403, "Forbidden")
        assert told.value.message == f'configmaps "app" is forbidden: {TOLD}'
        assert told.value.details["name"] == "app"
    assert fleet.proposed() == {APP: None}
    assert len(fleet.subjects()) == 1
    assert fleet.data("root:a") == {"a": "b"}
    fleet.merge()
    assert fleet.find("root:a", "configmaps", "app") is None


def test_one_that_waits_for_finalizers_is_not_marked(fleet: ProposalFleet) -> None:
    key = fleet.key("root:a", "configmaps", "app")
    fleet.update(key, lambda obj: obj["metadata"].update(finalizers=["example.org/hold"]))
    with pytest.raises(StatusError, match="proposed on branch"):
        fleet.deleted("root:a", "configmaps", "app")
    assert "deletionTimestamp" not in fleet.get("root:a", "configmaps", "app")["metadata"]
    assert fleet.proposed() == {APP: None}


def test_what_is_proposed_to_go_stays_if_it_is_changed(fleet: ProposalFleet) -> None:
    with pytest.raises(StatusError):
        fleet.deleted("root:a", "configmaps", "app")
    fleet.patched("root:a", "configmaps", "app", data={"a": "c"})
    assert "c" in (fleet.proposed()[APP] or "")


def test_once_it_is_merged_it_is_served_and_the_branch_begins_anew(fleet: ProposalFleet) -> None:
    fleet.patched("root:a", "configmaps", "app", data={"a": "c"})
    fleet.merge()
    assert fleet.data("root:a") == {"a": "c"}
    assert fleet.proposed() == {}
    fleet.made("root:a", "configmaps", a_configmap())
    assert fleet.proposed().keys() == {MADE}
    assert fleet.subjects() == ["alice: Propose to create configmaps default/made in root:a"]


def test_it_is_rebased_with_the_next_write(fleet: ProposalFleet) -> None:
    fleet.made("root:a", "configmaps", a_configmap())
    fleet.commit({f"{A}/app.yaml": configmap(a="served")})
    fleet.made("root:a", "configmaps", a_configmap("second"))
    head = fleet.proposal()
    assert head is not None
    assert fleet.mirror.repository.is_ancestor(fleet.repo.head, head)
    assert len(fleet.proposed()) == 2
    assert fleet.data("root:a") == {"a": "served"}


def test_what_conflicts_is_answered_with_what_to_do(fleet: ProposalFleet) -> None:
    fleet.patched("root:a", "configmaps", "app", data={"a": "mine"})
    head = fleet.proposal()
    fleet.commit({APP: configmap(a="theirs")})
    with pytest.raises(StatusError) as told:
        fleet.made("root:a", "configmaps", a_configmap())
    assert (told.value.code, told.value.reason) == (409, "Conflict")
    assert f"{BRANCH} conflicts with what is served in {APP}" in told.value.message
    assert f"git push origin --delete {BRANCH}" in told.value.message
    assert fleet.proposal() == head


def test_what_would_hold_the_workspace_is_refused_with_its_file(fleet: ProposalFleet) -> None:
    fleet.commit({f"{A}/shop.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
                  f"{A}/inside.yaml": configmap("inside", "shop")})  # fmt: skip
    with pytest.raises(StatusError) as told:
        fleet.deleted("root:a", "namespaces", "shop")
    assert (told.value.code, told.value.reason) == (422, "Invalid")
    assert f"{A}/inside.yaml" in told.value.message
    assert fleet.branches_there() == []


def test_a_stale_update_is_refused_as_ever(fleet: ProposalFleet) -> None:
    stale = {**fleet.get("root:a", "configmaps", "app"), "data": {"a": "mine"}}
    fleet.commit({APP: configmap(a="theirs")})
    with pytest.raises(StatusError) as told:
        fleet.patched("root:a", "configmaps", "app", **stale)
    assert told.value.code == 409


def test_users_have_branches_of_their_own(fleet: ProposalFleet) -> None:
    fleet.made("root:a", "configmaps", a_configmap(), user="ann")
    fleet.made("root:a", "configmaps", a_configmap(a="other"), user="Ann")
    fleet.made("root:b", "configmaps", a_configmap(), user="ann")
    assert fleet.branches_there() == [
        "refs/heads/treeplane/proposals/=41nn/root-a",
        "refs/heads/treeplane/proposals/ann/root-a",
        "refs/heads/treeplane/proposals/ann/root-b",
    ]
    assert fleet.subjects(user="ann") == ["ann: Propose to create configmaps default/made in root:a"]


def test_a_secret_is_not_proposed(fleet: ProposalFleet) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {}}
    with pytest.raises(StatusError) as told:
        fleet.made("root:a", "secrets", secret)
    assert told.value.code == 403
    assert "keys/secrets/" in told.value.message and ".sops.yaml" in told.value.message
    assert fleet.branches_there() == []


def test_what_is_runtime_state_goes_to_the_store(fleet: ProposalFleet) -> None:
    account = "system:serviceaccount:default:operator"
    outcome = fleet.made("root:a", "configmaps", a_configmap("seen"), user=account)
    assert outcome.warnings == ()
    assert fleet.find("root:a", "configmaps", "seen") is not None
    fleet.deleted("root:a", "configmaps", "seen")
    assert fleet.find("root:a", "configmaps", "seen") is None
    assert fleet.branches_there() == []


def test_a_workspace_that_is_held_takes_none(fleet: ProposalFleet) -> None:
    fleet.commit({f"{A}/bad.yaml": "kind: ["})
    with pytest.raises(StatusError) as told:
        fleet.made("root:a", "configmaps", a_configmap())
    assert told.value.code == 503


WORKSPACE = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "new"}}
WORKSPACES = "workspaces.tenancy.kcp.io"


def test_a_workspace_is_proposed_as_its_directory(fleet: ProposalFleet) -> None:
    for labels in ({}, {}, {"tier": "one"}):
        sent = {**WORKSPACE, "metadata": {"name": "new", "labels": labels}}
        assert "proposed on branch" in fleet.made("root:a", WORKSPACES, sent).warnings[-1]
    found = fleet.proposed()
    assert found.keys() == {
        f"{A}/new/workspace.yaml",
        f"{A}/new/_objects/_cluster/clusterrolebindings.rbac.authorization.k8s.io/workspace-admin.yaml",
    }
    assert "tier: one" in (found[f"{A}/new/workspace.yaml"] or "")
    assert len(fleet.subjects()) == 2
    assert "root:a:new" not in fleet.paths()
    fleet.merge()
    assert "root:a:new" in fleet.paths()


def test_the_end_of_a_workspace_is_its_directorys(fleet: ProposalFleet) -> None:
    for _ in range(2):
        with pytest.raises(StatusError, match="proposed on branch treeplane/proposals/alice/root;"):
            fleet.deleted("root", WORKSPACES, "b")
    assert len(fleet.subjects("root")) == 1
    assert all(path.startswith("workspaces/root/b/") for path in fleet.proposed("root"))
    assert "root:b" in fleet.paths()
    fleet.merge("root")
    assert "root:b" not in fleet.paths()
