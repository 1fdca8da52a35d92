"""What git said earlier: asked before anything on a target is pruned that the store cannot explain."""

from __future__ import annotations

from support.loadedfleet import A, LoadedFleet, configmap

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
