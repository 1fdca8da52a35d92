"""Backups of a fleet in a test, and what a new server has of one."""

from __future__ import annotations

from pathlib import Path

import pyrage
from support.loadedfleet import LoadedFleet

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.storage.lmdb import open_store
from apiserver.stores import DECLARED
from reconciler.encryption.agekeys import AgeIdentity
from reconciler.saving.archive import write
from reconciler.saving.contents import Saved, entries
from reconciler.saving.puttingback import UNRECORDED, PuttingBack
from reconciler.saving.taking import TakenBackup, take

SECRET = str(pyrage.x25519.Identity.generate())
IDENTITY = AgeIdentity(SECRET)


def runtime(fleet: LoadedFleet, path: str, name: str) -> Key:
    """An object that was made through the API."""
    key = fleet.key(path, "configmaps", name)
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}", "annotations": {marks.ORIGIN: marks.RUNTIME}}
    fleet.put(key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"made": name}})
    return key


def backed_up(fleet: LoadedFleet, file: Path) -> Saved:
    """The store is closed meanwhile: a process opens one once."""
    fleet.keys.mkdir(exist_ok=True)
    (fleet.keys / "ca.key").write_text("the key of the CA")
    fleet.store.close()
    saved = Saved()
    with file.open("wb") as target:
        write(entries(fleet.directory, fleet.keys, 0.0, saved), IDENTITY.recipient, target)
    fleet.store = open_store(fleet.directory / "store", sync=False, declared=DECLARED)
    fleet.loader = fleet.new_loader()
    return saved


def taken(file: Path, place: Path) -> TakenBackup:
    place.mkdir()
    return take(file, [IDENTITY], place)


def recovered(fleet: LoadedFleet, directory: Path, file: Path | None) -> tuple[LoadedFleet, str]:
    """A new server over the repository of one that is lost, with a backup or without; and what it says of that."""
    directory.mkdir()
    said = ""
    if file is None:
        new = LoadedFleet(directory / "data", fleet.repo)
    else:
        found = taken(file, directory / "taken")
        new = LoadedFleet(directory / "data", fleet.repo, found.keys)
        found.store.rename(new.directory / UNRECORDED)
    putting = PuttingBack(new.directory / UNRECORDED, new.store)
    putting.begin()
    recorded = new.recorded()
    assert recorded is not None
    new.load(recorded)
    if putting.waits:
        said = putting.end()
    return new, said
