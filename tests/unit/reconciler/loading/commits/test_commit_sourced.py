"""Writes to a workspace whose own content comes from another repository: none becomes a commit of the fleet's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commitfleet import WRITES_COMMIT, CommitFleet, a_configmap
from support.loadedfleet import A, configmap
from support.sourcedfleet import SHOP, SourcedFleet, TenantRepos

from apiserver.model.errors import StatusError

WORKSPACES = "workspaces.tenancy.kcp.io"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: told}\nstringData: {a: b}\n"


class SourcedCommitFleet(SourcedFleet, CommitFleet):
    """Both."""


@pytest.fixture
def sourced(tmp_path: Path) -> Iterator[SourcedCommitFleet]:
    made = SourcedCommitFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    made.begin({"treeplane.yaml": WRITES_COMMIT})
    # Where the tenant has his files the fleet has another's.
    made.tenants.push({f"{A}/app.yaml": configmap(a="shop"), f"{A}/told.yaml": SECRET})
    made.source(path=A)
    made.serve()
    yield made
    made.close()


@pytest.mark.parametrize(
    "write",
    [
        lambda fleet: fleet.create("root:a", "configmaps", a_configmap()),
        lambda fleet: fleet.change("root:a", "configmaps", "app", data={"a": "c"}),
        lambda fleet: fleet.remove("root:a", "configmaps", "app"),
        lambda fleet: fleet.change("root:a", "secrets", "told", data={"a": "Yw=="}),
    ],
    ids=("create", "change", "remove", "secret"),
)
def test_a_write_is_refused_and_the_repository_is_named(
    sourced: SourcedCommitFleet, write: Callable[[CommitFleet], Any]
) -> None:
    head = sourced.repo.head
    with pytest.raises(StatusError) as refused:
        write(sourced)
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
    said = f"root:a is not written to: its content comes from {SHOP} (branch main, {A}/): change it there, and push"
    assert said in str(refused.value)
    assert (sourced.repo.head, sourced.data("root:a")) == (head, {"a": "shop"})


def test_others_are_written_to_as_ever(sourced: SourcedCommitFleet) -> None:
    kid = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "kid"}}
    sourced.create("root:a", WORKSPACES, kid)
    assert sourced.record("root:a:kid").served
    sourced.create("root:b", "configmaps", a_configmap())
    assert sourced.data("root:b", "made") == {"a": "b"}
    assert sourced.data("root:a") == {"a": "shop"}


def test_a_source_is_given_and_taken_out_through_the_api_as_well(sourced: SourcedCommitFleet) -> None:
    spec = sourced.workspace("root:a")["spec"]
    sourced.change("root", WORKSPACES, "a", spec={each: said for each, said in spec.items() if each != "source"})
    assert sourced.record("root:a").source == {}
    assert sourced.data("root:a") is None
    with pytest.raises(StatusError, match=r"nothing of .* is here yet"):
        sourced.change("root", WORKSPACES, "a", spec={**spec, "source": {**spec["source"], "branch": "next"}})
