"""What git said earlier: asked before anything on a target is pruned that the store cannot explain."""

from __future__ import annotations

from support.loadedfleet import A, LoadedFleet, configmap
from support.sealing import AgeKey, encrypted, secret

from apiserver.model.commits import parse
from reconciler.loading.declared import Declarations

APP = f"{A}/app.yaml"


def declared(fleet: LoadedFleet, commit: str, name: str = "app", path: str = "root:a") -> bool:
    return Declarations(fleet.store, fleet.mirror.repositories).declared(
        path, parse(commit), "", "configmaps", "default", name
    )


def test_an_object_that_a_later_commit_removed(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    fleet.commit({APP: configmap("other")})
    assert declared(fleet, first)
    assert declared(fleet, first, "other")
    assert not declared(fleet, first, "never")


def test_an_object_that_came_and_went_after_the_commit(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    fleet.commit({f"{A}/more.yaml": configmap("more")})
    fleet.commit({f"{A}/more.yaml": None})
    assert declared(fleet, first, "more")


def test_a_commit_that_the_branch_does_not_have(fleet: LoadedFleet) -> None:
    assert not declared(fleet, "1" * 40)


def test_a_workspace_that_is_gone(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    fleet.commit({APP: None, f"{A}/workspace.yaml": None})
    assert declared(fleet, first)
    assert not declared(fleet, first, "never")


def test_a_kind_that_nobody_knows(fleet: LoadedFleet) -> None:
    found = Declarations(fleet.store, fleet.mirror.repositories)
    assert not found.declared("root:a", parse(fleet.repo.head), "example.io", "widgets", "default", "app")


def test_a_secret_that_nobody_here_can_read_is_declared_still(fleet: LoadedFleet) -> None:
    """After a loss of the keys it is not there, and what runs on a target stays."""

    def went(name: str) -> bool:
        found = Declarations(fleet.store, fleet.mirror.repositories)
        return found.declared("root:a", parse(first), "", "secrets", "default", name)

    key = AgeKey()
    fleet.commit({f"{A}/{name}.yaml": encrypted(secret(name, password="x"), key) for name in ("one", "two")})
    first = fleet.repo.head
    assert not went("one") and not went("two")
    fleet.commit({f"{A}/two.yaml": None})
    assert not went("one") and went("two")


def pinned(fleet: LoadedFleet, commit: str) -> None:
    head = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
    fleet.commit({f"{A}/workspace.yaml": f"{head}spec: {{serve: {{commit: {commit}}}}}\n"})


def test_what_a_pin_had_served_counts_as_what_the_commit_said_itself(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    fleet.commit({APP: configmap("other")})
    fleet.commit({f"{A}/workspace.yaml": "", f"{A}/more.yaml": configmap("more")})
    pinned(fleet, first)
    there = fleet.repo.head
    fleet.commit({f"{A}/workspace.yaml": "", APP: None, f"{A}/more.yaml": None})
    assert all(declared(fleet, there, name) for name in ("app", "other", "more"))
    assert not declared(fleet, fleet.repo.head, "app")
