"""A workspace that is pinned has what it renders made of the files of then, shared ones included, and of no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, LoadedFleet, configmap

K = f"{A}/k"
SHARED = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases]}}}}\n"


def pinning(commit: str) -> str:
    value = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": {"serve": {"commit": commit}}}
    return json.dumps(value)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet", renders=FakeRenders())
    base = {"bases/kustomization.yaml": "resources: [s.yaml]\n", "bases/s.yaml": configmap("s", v="1")}
    made.begin({"treeplane.yaml": SHARED, **base, f"{K}/kustomization.yaml": "resources: [../../../../bases]\n"})
    assert made.held() == {}
    yield made
    made.close()


def test_it_is_made_of_the_files_of_then(fleet: LoadedFleet) -> None:
    then = fleet.repo.head
    fleet.commit({"bases/s.yaml": configmap("s", v="2")})
    assert fleet.data("root:a", "s") == {"v": "2"}
    fleet.commit({f"{A}/workspace.yaml": pinning(then)})
    assert (fleet.held(), fleet.data("root:a", "s")) == ({}, {"v": "1"})
    fleet.commit({"bases/s.yaml": configmap("s", v="3")})
    assert fleet.data("root:a", "s") == {"v": "1"}
    fleet.commit({f"{A}/workspace.yaml": ""})
    assert fleet.data("root:a", "s") == {"v": "3"}


def test_nothing_is_inherited_from_a_commit_that_had_lost_a_file(fleet: LoadedFleet) -> None:
    """Not by what is rendered either: a directory below it was another workspace's."""
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/in/k.yaml": configmap("k")})
    fleet.commit({f"{A}/kid/workspace.yaml": None, f"{A}/kustomization.yaml": "resources: [kid/in/k.yaml]\n"})
    lost = fleet.repo.head
    assert {"root:a", "root:a:kid"} <= fleet.held().keys()
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kustomization.yaml": None, f"{A}/workspace.yaml": pinning(lost)})
    assert f"in which {A}/kid had lost the workspace.yaml of root:a:kid" in fleet.held()["root:a"][0]
    assert fleet.data("root:a", "k") is None
