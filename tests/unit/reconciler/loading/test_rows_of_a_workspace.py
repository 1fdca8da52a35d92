"""What a workspace takes of the store: how many rows, and in which of its tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.loadedfleet import LoadedFleet, configmap

from apiserver.model.keys import Internal
from apiserver.model.tables import Table

TOGETHER = 40
UNIVERSAL = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: universal, path: root}}\n"


def taken(fleet: LoadedFleet) -> dict[str, tuple[int, int]]:
    """By table of the store: how many entries there are, and their bytes."""
    env: Any = fleet.store._env  # type: ignore[attr-defined]
    parts = {"objects": env.objects, "rows": env.rows, "counts": env.counts, "templates": env.templates_table}
    with env.read() as txn:
        found = {name: list(txn.cursor(db=part)) for name, part in parts.items()}
    return {name: (len(all_), sum(len(key) + len(value) for key, value in all_)) for name, all_ in found.items()}


def appear(fleet: LoadedFleet, name: str, files: dict[str, str]) -> None:
    """Workspaces that have these files each, in one commit."""
    places = [f"workspaces/root/{n:02}/{name}-{n:02}" for n in range(TOGETHER)]
    fleet.commit({f"{place}/{file}": text for place in places for file, text in files.items()})


@pytest.mark.parametrize(
    ("files", "objects", "most"),
    [
        ({}, 4, 445),
        ({"one.yaml": configmap("one"), "two.yaml": configmap("two")}, 6, 1300),
    ],
    ids=["empty", "two files"],
)
def test_a_workspace_has_one_row_beside_its_objects(
    fleet: LoadedFleet, files: dict[str, str], objects: int, most: int
) -> None:
    """Of the objects one is the index by its logical cluster; one counts row says how many there are of each kind."""
    appear(fleet, "warm", {"workspace.yaml": UNIVERSAL, **files})
    before, count = taken(fleet), fleet.store.count(Internal.WORKSPACE)
    appear(fleet, "ws", {"workspace.yaml": UNIVERSAL, **files})
    after = taken(fleet)
    assert fleet.store.count(Internal.WORKSPACE) == count + TOGETHER
    more = Counter({name: (after[name][0] - before[name][0]) / TOGETHER for name in after})
    assert more == {"objects": objects, "rows": 1, "counts": 1, "templates": 0}
    assert sum(after[name][1] - before[name][1] for name in after) / TOGETHER < most
    assert {row.key for row in fleet.store.scan_rows(Table.WORKSPACES, "root:ws-")} == {
        f"root:ws-{n:02}" for n in range(TOGETHER)
    }
