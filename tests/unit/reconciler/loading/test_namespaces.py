"""Namespaces that come and go: what of a workspace is looked at for it."""

from __future__ import annotations

import pytest
from support.loadedfleet import A, LoadedFleet, configmap

from reconciler.layout.source import Piece
from reconciler.loading.files import Files


def namespace(name: str, **labels: str) -> str:
    said = "".join(f"\n    {key}: {value}" for key, value in labels.items())
    return f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n" + (f"  labels:{said}\n" if said else "")


NS, APP = f"{A}/ns.yaml", f"{A}/inside.yaml"
IN_X = configmap("inside", namespace="x")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read."""
    paths: list[str] = []
    real = Files.read

    def noted(self: Files, path: str, blob: str) -> Piece:
        paths.append(path)
        return real(self, path, blob)

    monkeypatch.setattr(Files, "read", noted)
    return paths


def test_a_namespace_that_appears_costs_what_comes_with_it(fleet: LoadedFleet, read: list[str]) -> None:
    read.clear()
    fleet.commit({NS: namespace("x"), APP: IN_X})
    assert set(read) == {NS, APP}
    assert fleet.written() == ["+configmaps/root:a/x/inside", "+namespaces/root:a//x"]
    assert fleet.data("root:a", "inside", "x") == {"a": "b"}


def test_a_namespace_that_changes_costs_its_file(fleet: LoadedFleet, read: list[str]) -> None:
    fleet.commit({NS: namespace("x"), APP: IN_X})
    read.clear()
    fleet.commit({NS: namespace("x", team="a")})
    assert set(read) == {NS}
    assert fleet.get("root:a", "namespaces", "x")["metadata"]["labels"]["team"] == "a"


def test_a_namespace_that_moves_to_another_file_is_not_gone(fleet: LoadedFleet, read: list[str]) -> None:
    fleet.commit({NS: namespace("x"), APP: IN_X})
    read.clear()
    loaded = fleet.commit({NS: None, f"{A}/other.yaml": namespace("x")})
    assert set(read) == {NS, f"{A}/other.yaml"}
    assert fleet.held(loaded) == {}
    assert fleet.written() == ["~namespaces/root:a//x"]


def test_what_stays_behind_in_a_namespace_that_goes_is_found(fleet: LoadedFleet) -> None:
    fleet.commit({NS: namespace("x"), APP: IN_X})
    loaded = fleet.commit({NS: None})
    [said] = fleet.held(loaded)["root:a"]
    assert said.startswith(f"{APP}:1: ConfigMap inside is in the namespace x, which is not declared")


def test_another_kind_called_namespace_does_not_stand_for_it(fleet: LoadedFleet) -> None:
    fleet.commit({NS: namespace("x"), APP: IN_X})
    loaded = fleet.commit({NS: namespace("x").replace("v1", "example.io/v1")})
    assert any(said.startswith(APP) for said in fleet.held(loaded)["root:a"])


def test_what_waits_for_a_namespace_is_good_when_it_comes(fleet: LoadedFleet) -> None:
    assert set(fleet.held(fleet.commit({APP: IN_X}))) == {"root:a"}
    loaded = fleet.commit({NS: namespace("x")})
    assert fleet.held(loaded) == {}
    assert fleet.data("root:a", "inside", "x") == {"a": "b"}


def test_a_namespace_declared_twice_is_an_error_of_both_files(fleet: LoadedFleet) -> None:
    fleet.commit({NS: namespace("x")})
    loaded = fleet.commit({f"{A}/again.yaml": namespace("x")})
    assert {said.partition(":")[0] for said in fleet.held(loaded)["root:a"]} == {NS, f"{A}/again.yaml"}


def test_the_default_namespace_may_be_declared_and_left_again(fleet: LoadedFleet) -> None:
    uid = fleet.get("root:a", "namespaces", "default")["metadata"]["uid"]
    fleet.commit({NS: namespace("default", team="a")})
    declared = fleet.get("root:a", "namespaces", "default")["metadata"]
    assert (declared["uid"], declared["labels"]["team"]) == (uid, "a")
    fleet.commit({NS: None})
    left = fleet.get("root:a", "namespaces", "default")["metadata"]
    assert left["uid"] == uid
    assert "team" not in left["labels"]
    assert fleet.data("root:a") == {"a": "b"}
