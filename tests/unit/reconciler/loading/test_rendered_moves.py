"""Workspaces of which some is rendered move, where it comes to the same in the new place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.moving import C, move

SHARED = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases]}}}}\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet", renders=FakeRenders())
    made.begin(
        {
            "treeplane.yaml": SHARED,
            "bases/kustomization.yaml": "resources: [s.yaml]\n",
            "bases/s.yaml": configmap("s"),
            f"{A}/k/kustomization.yaml": "resources: [../../../../bases, ../base]\n",
            f"{A}/.treeplaneignore": "base\n",
            f"{A}/base/kustomization.yaml": "resources: [y.yaml]\n",
            f"{A}/base/y.yaml": configmap("y", v="1"),
        }
    )
    assert made.held() == {}
    yield made
    made.close()


def test_it_is_what_it_was_in_its_new_place(fleet: LoadedFleet) -> None:
    uid = fleet.get("root:a", "configmaps", "s")["metadata"]["uid"]
    move(fleet)
    assert fleet.held() == {}
    assert "root:a" not in fleet.paths()
    found = fleet.get("root:c", "configmaps", "s")["metadata"]
    assert (found["uid"], found["annotations"]["treeplane.dev/source-path"]) == (uid, f"{C}/k/kustomization.yaml")
    fleet.commit({"bases/s.yaml": configmap("s", v="2")})
    assert fleet.data("root:c", "s") == {"v": "2"}


def test_a_base_that_changes_with_it_is_a_change(fleet: LoadedFleet) -> None:
    move(fleet, **{f"{C}/base/y.yaml": configmap("y", v="2")})
    assert "changes nothing else in it" in str(fleet.held())
    assert fleet.data("root:a", "y") == {"v": "1"}


def test_a_place_from_which_a_base_is_not_found_is_another(fleet: LoadedFleet) -> None:
    move(fleet, new=f"{B}/c")
    assert "is not the same there" in str(fleet.held())
    assert fleet.data("root:a", "s") is not None
