"""Writes to a workspace whose own content is pinned: none becomes a commit, since nobody would be served with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.commitfleet import CommitFleet, a_configmap
from support.loadedfleet import A, configmap

from apiserver.model.errors import StatusError

WORKSPACES = "workspaces.tenancy.kcp.io"
HEAD = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"


@pytest.fixture
def pinned(fleet: CommitFleet) -> CommitFleet:
    fleet.commit({f"{A}/app.yaml": configmap(a="new")})
    said = json.dumps({"commit": fleet.repo.commits[0], "reason": "it fails"})
    fleet.commit({f"{A}/workspace.yaml": f"{HEAD}spec: {{serve: {said}}}\n"})
    assert fleet.data("root:a") == {"a": "b"}
    return fleet


@pytest.mark.parametrize(
    "write",
    [
        lambda fleet: fleet.create("root:a", "configmaps", a_configmap()),
        lambda fleet: fleet.change("root:a", "configmaps", "app", data={"a": "c"}),
        lambda fleet: fleet.remove("root:a", "configmaps", "app"),
    ],
    ids=("create", "change", "remove"),
)
def test_a_write_is_refused_and_the_pin_is_named(pinned: CommitFleet, write: Callable[[CommitFleet], Any]) -> None:
    head = pinned.repo.head
    with pytest.raises(StatusError) as refused:
        write(pinned)
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
    said = str(refused.value)
    assert f"workspace root:a is not written to: it is pinned to {pinned.repo.commits[0][:10]} by {A}/" in said
    assert "(it fails), and what is written now would not be served: take spec.serve out first" in said
    assert (pinned.repo.head, pinned.data("root:a")) == (head, {"a": "b"})


def test_what_the_pin_takes_away_may_be_let_go(fleet: CommitFleet) -> None:
    first = fleet.repo.head
    waiting = configmap("more").replace("{name: more}", "{name: more, finalizers: [example.io/wait]}")
    fleet.commit({f"{A}/more.yaml": waiting})
    fleet.commit({f"{A}/workspace.yaml": f"{HEAD}spec: {{serve: {{commit: {first}}}}}\n"})
    metadata = fleet.get("root:a", "configmaps", "more")["metadata"]
    assert "deletionTimestamp" in metadata
    fleet.change("root:a", "configmaps", "more", metadata={**metadata, "finalizers": []})
    assert fleet.data("root:a", "more") is None


def test_children_are_made_and_others_written_to_as_ever(pinned: CommitFleet) -> None:
    kid = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "kid"}}
    pinned.create("root:a", WORKSPACES, kid)
    assert pinned.record("root:a:kid").served
    pinned.change("root:a", WORKSPACES, "kid", metadata={"name": "kid", "labels": {"a": "b"}})
    assert pinned.workspace("root:a:kid")["metadata"]["labels"] == {"a": "b"}
    pinned.remove("root:a", WORKSPACES, "kid")
    assert "root:a:kid" not in pinned.paths()
    pinned.create("root:b", "configmaps", a_configmap())
    assert pinned.data("root:b", "made") == {"a": "b"}
    assert pinned.data("root:a") == {"a": "b"}


def test_the_pin_is_set_and_taken_out_through_the_api_as_well(pinned: CommitFleet) -> None:
    first, spec = pinned.repo.commits[0], pinned.workspace("root:a")["spec"]
    pinned.change("root", WORKSPACES, "a", spec={each: said for each, said in spec.items() if each != "serve"})
    assert pinned.data("root:a") == {"a": "new"}
    pinned.change("root", WORKSPACES, "a", spec={**spec, "serve": {"commit": first}})
    assert pinned.data("root:a") == {"a": "b"}
    assert f"commit: {first}" in pinned.tree()[f"{A}/workspace.yaml"]
    with pytest.raises(StatusError, match="which is no commit of this repository") as refused:
        pinned.change("root", WORKSPACES, "a", spec={**spec, "serve": {"commit": "1" * 40}})
    assert refused.value.code == 422
