"""What fleet.yaml of the status branch says of a store, but for what is of one status commit (revision, history).

Called by the writer, and by the drill, which asks it of a store that was recovered.
"""

from __future__ import annotations

from dataclasses import replace

from apiserver.registry.tree import FleetRecord, leaving
from apiserver.storage.protocol import View
from reconciler.statusbranch.realtargets import real_targets
from reconciler.statusbranch.recorded import FleetFacts


def of_store(store: View, fleet: FleetRecord, known: FleetFacts, folders: tuple[str, ...]) -> FleetFacts:
    """`known`: what is recorded so far, whose other facts stay; `folders`: of the repository, as it is read."""
    there = {path: record.directory for path, record in leaving(store).items() if not record.stored}
    return replace(
        known,
        id=fleet.fleet,
        claims=fleet.claims,
        branch=fleet.branch,
        kept=fleet.kept,
        targets=_targets(store, fleet, known),
        leaving=there,
        verified=fleet.verified,
        grafts=fleet.grafts,
        regrafting=fleet.regrafting,
        folders=folders,
    )


def _targets(store: View, fleet: FleetRecord, known: FleetFacts) -> tuple[str, ...]:
    """What a recovery could not bring back may have real clusters too."""
    lost = known.targets or () if fleet.lost else ()
    return tuple(sorted({*real_targets(store), *lost}))
