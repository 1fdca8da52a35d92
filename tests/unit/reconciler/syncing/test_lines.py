"""A line inserted above an object writes nothing to any cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.syncedfleet import DEPLOYMENT, SyncedFleet, config


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[SyncedFleet]:
    made = SyncedFleet(tmp_path / "synced")
    yield made
    made.close()


def test_a_line_above_is_written_to_no_target(synced: SyncedFleet, eventually: Any) -> None:
    two = f"{config('one')}---\n{config('settings', a='b')}"
    synced.begin()
    synced.commit(settings=two)
    west = synced.clusters["west"]

    def noted() -> bool:
        inventory = west.find("configmaps", "treeplane-inventory")
        return inventory["data"]["commit"] == str(synced.fleet.record("root:shop").commit)

    eventually(lambda: west.names("configmaps") >= {"one", "settings"} and west.names("deployments") and noted())
    before = len(west.writes)
    synced.commit(settings=f"# a line\n{two}", web=f"# a line\n{DEPLOYMENT}")
    synced.commit(more=config("more"))  # what comes after it has arrived, and so would have what it wrote
    eventually(lambda: "more" in west.names("configmaps") and noted())
    assert {write[1:] for write in west.writes[before:]} == {"configmaps/more", "configmaps/treeplane-inventory"}
