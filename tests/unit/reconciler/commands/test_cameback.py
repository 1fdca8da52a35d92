"""What a server says that recovered a fleet: what came back, what did not, what is different, and who holds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, LoadedFleet
from support.widgets import export, schema

from reconciler.commands.cameback import came_back
from reconciler.commands.settings import ReconcileSettings


@pytest.fixture
def lost(tmp_path: Path) -> Iterator[LoadedFleet]:
    """A fleet with an export in root:a and writes to the store, recovered without the keys of before."""
    old = LoadedFleet(tmp_path / "old")
    files = {f"{A}/schema.json": schema(), f"{A}/export.json": export()}
    old.begin({"treeplane.yaml": TREEPLANE_YAML + "spec: {writes: Store}\n", **files})
    old.publish()
    new = LoadedFleet(tmp_path / "new", old.repo)
    new.load(new.recorded())
    yield new
    old.close()
    new.close()


def told(fleet: LoadedFleet, holder: str = "", *, new_keys: bool = False) -> list[str]:
    settings = ReconcileSettings(fleet.directory, fleet.keys, source="s", url="u", local_url="u")
    recorded = fleet.recorded()
    assert recorded is not None
    repo = fleet.mirror.repository
    return came_back(fleet.store, repo, recorded, replace(settings, new_keys=new_keys), holder).splitlines()


def test_what_came_back_and_what_did_not(lost: LoadedFleet) -> None:
    place = lost.keys / "identities" / f"{lost.record('root:a').cluster}:widgets"
    said = told(lost)
    assert said[0].startswith("recovered from the repository: 4 workspaces, as its status branch had them at ")
    what = "the identity key of an APIExport (root:a:widgets); put it there from a backup of keys/"
    identity = f"  not back: {place}: {what}"
    assert [line for line in said[1:] if "root:compute:kubernetes" not in line] == [
        "  not back: what was made through the API in root, root:a, root:b, root:compute, but for what a backup had",
        "  not back: Events, Leases and other runtime objects",
        identity,
        "  this server holds the fleet",
        "  what is wrong now: treeplane status",
    ]
    place.parent.mkdir(parents=True)
    place.touch()
    assert identity not in told(lost)


def test_one_whose_keys_are_new(lost: LoadedFleet) -> None:
    said = "\n".join(told(lost, new_keys=True))
    assert f"  different: {lost.keys} is new, with a CA of its own: kubeconfigs, clones and tokens of before" in said


def test_one_that_observes(lost: LoadedFleet) -> None:
    said = told(lost, "other/7")
    assert "  other/7 holds the fleet: this server only observes" in said
    assert "  this server holds the fleet" not in said
