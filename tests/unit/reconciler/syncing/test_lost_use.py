"""A workspace that may not use a cluster any more keeps what it has there, and gets nothing new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.syncedfleet import INFRA, USE, SyncedFleet, config, namespace

PLACEMENTS = "placements.scheduling.kcp.io"


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[SyncedFleet]:
    made = SyncedFleet(tmp_path / "synced")
    yield made
    made.close()


def there(fleet: SyncedFleet) -> set[str]:
    return fleet.clusters["west"].names("configmaps") - {"treeplane-inventory"}


def told(fleet: SyncedFleet, kind: str) -> str:
    placement = fleet.fleet.get("root:shop", PLACEMENTS, "prod", "")
    return str(fleet.condition(placement, kind).get("message", ""))


def lost(fleet: SyncedFleet) -> bool:
    """It is said, and on record: what is done on clusters follows records."""
    assert fleet.syncing is not None
    standing = fleet.syncing.bindings.standings(fleet.fleet.record("root:shop").cluster).get("prod")
    return "nothing new is copied there" in told(fleet, "Scheduled") and standing is not None and standing.nothing_new


def use(fleet: SyncedFleet, text: str | None) -> None:
    fleet.fleet.repo.commit({f"{INFRA}/use.yaml": text})
    if fleet.syncing is not None:
        fleet.fleet.load()


@pytest.mark.parametrize("when", ["at once", "server away", "store lost"])
def test_nothing_new_comes_and_what_is_there_stays(synced: SyncedFleet, eventually: Any, when: str) -> None:
    synced.begin()
    eventually(lambda: there(synced) == {"settings"})
    if when == "server away":
        synced.stop()
    use(synced, None)
    if when == "server away":
        synced.start()
    eventually(lambda: lost(synced))
    if when == "store lost":
        synced.lose()
        eventually(lambda: lost(synced))
    # Neither where there is something nor in a namespace that comes. Changes of what is there follow.
    new = {"late": config("late"), "second": namespace("second", app="web"), "other": config("other", "second")}
    synced.commit(**new, settings=config("settings", a="changed"))
    west = synced.clusters["west"]
    eventually(lambda: west.find("configmaps", "settings")["data"] == {"a": "changed"})
    eventually(lambda: "configmaps web/late: its workspace may not use this cluster any more" in told(synced, "Synced"))
    eventually(lambda: "configmaps second/other: its workspace may not" in told(synced, "Synced"))
    assert there(synced) == {"settings"}
    # What is deleted goes; what may be used again takes everything.
    use(synced, USE)
    eventually(lambda: there(synced) == {"settings", "late", "other"})
    eventually(lambda: "may not use" not in told(synced, "Synced") + told(synced, "Scheduled"))


def test_what_is_deleted_goes_all_the_same(synced: SyncedFleet, eventually: Any) -> None:
    synced.begin()
    eventually(lambda: there(synced) == {"settings"})
    use(synced, None)
    eventually(lambda: lost(synced))
    synced.commit(settings=None)
    eventually(lambda: there(synced) == set())


def test_an_owner_cannot_edit_its_way_round_it(synced: SyncedFleet, eventually: Any) -> None:
    """By locations that are none: the decision stays, and so does what was lost."""
    synced.begin()
    eventually(lambda: there(synced) == {"settings"})
    use(synced, None)
    eventually(lambda: lost(synced))
    text = synced.fleet.repo.files(synced.fleet.repo.head)["workspaces/root/shop/placement.yaml"]
    forged = text.replace(
        "metadata: {name: prod}", 'metadata: {name: prod, annotations: {"treeplane.dev/nothing-new": ""}}'
    )
    synced.commit(placement=forged.replace("locationWorkspace: root:infra", "locationWorkspace: root:shop"))
    synced.commit(late=config("late"))
    eventually(lambda: "configmaps web/late: its workspace may not use this cluster any more" in told(synced, "Synced"))
    assert there(synced) == {"settings"}
