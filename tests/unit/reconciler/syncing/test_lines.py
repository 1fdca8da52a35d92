"""What changes nothing there writes nothing to any cluster: a line above an object, and a start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.syncedfleet import DEPLOYMENT, SyncedFleet, config, namespace

from reconciler.loading.heads import FOLLOW, BranchSettings
from reconciler.syncing.upkeep import NamespaceUpkeep


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


@pytest.mark.parametrize("how", ["stopped", "lost"])
def test_a_start_writes_to_no_namespace_that_a_later_commit_passed_by(
    synced: SyncedFleet, eventually: Any, how: str
) -> None:
    """The inventory goes on to name an earlier commit, from which git can tell what was taken away since."""
    synced.begin(**{"workspaces/root/shop/second.yaml": namespace("second", app="web")})
    west = synced.clusters["west"]

    def inventories() -> dict[str, str]:
        return {name: obj["data"]["commit"] for name, obj in west.all("configmaps", "treeplane-inventory").items()}

    def applied() -> str:
        return str(synced.fleet.record("root:shop").commit)

    eventually(lambda: list(inventories().values()) == [applied()])
    synced.commit(there=config("there", "second"))
    # The inventory comes before what it is about.
    eventually(lambda: len(inventories()) == 2 and applied() in inventories().values())
    eventually(lambda: "there" in west.names("configmaps"))
    there = applied()
    synced.commit(settings=config("settings", a="c"))  # of the other namespace
    eventually(lambda: set(inventories().values()) == {there, applied()})
    before, named = len(west.writes), inventories()
    if how == "lost":
        synced.lose()
    else:
        synced.stop()
        synced.start()
    synced.commit(more=config("more"))  # what comes after it has arrived, and so would have what it wrote
    eventually(lambda: "more" in west.names("configmaps") and list(inventories().values()).count(applied()) == 1)
    assert {write[1:] for write in west.writes[before:]} == {"configmaps/more", "configmaps/treeplane-inventory"}
    assert [name for name, commit in inventories().items() if named[name] == commit] != []
    synced.stop()
    synced.commit(there=None)
    synced.start()
    eventually(lambda: "there" not in west.names("configmaps"))


def test_what_was_written_and_not_noted_before_an_end_is_noted_by_the_next_start(
    synced: SyncedFleet, eventually: Any
) -> None:
    """So that git tells of it even where the branch goes elsewhere meanwhile, from before what was written."""
    fleet = synced.fleet
    fleet.loader = fleet.new_loader(BranchSettings(rewrites=FOLLOW, keep=fleet.mirror.keep))
    synced.begin()
    west = synced.clusters["west"]

    def named() -> str:
        return str(west.find("configmaps", "treeplane-inventory")["data"]["commit"])

    eventually(lambda: "settings" in west.names("configmaps") and west.names("deployments"))
    eventually(lambda: named() == str(fleet.record("root:shop").commit))
    before = fleet.repo.head
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(NamespaceUpkeep, "_write", lambda *_: None)
        synced.commit(more=config("more"))
        eventually(lambda: "more" in west.names("configmaps"))
        synced.stop()
    assert named() == before
    synced.start()
    eventually(lambda: named() == fleet.repo.head)
    synced.stop()
    fleet.repo.reset(before)
    synced.commit(instead=config("instead"))
    synced.start()
    eventually(lambda: "instead" in west.names("configmaps") and "more" not in west.names("configmaps"))
