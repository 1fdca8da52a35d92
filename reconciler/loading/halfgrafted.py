"""Workspaces in tenants' repositories of which a status commit was recorded while they followed these: a step was under
way, from what the fleet's record says of them to where it leads (Grafting).

Called where an empty store is filled. What had come with the step is brought back as it is recorded, and what had gone
stays away; the rest of the step is taken when all are back (Grafting.finish).
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.registry import tree
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Store
from reconciler.layout.compare import touched
from reconciler.layout.grafts import OF
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.step import FindRecorded
from reconciler.loading.steps import Stepper
from reconciler.loading.trees import Trees
from reconciler.loading.ways import RECOVERY
from reconciler.statusbranch.recorded import FleetFacts, RecordedFleet

Said = dict[str, dict[str, str]]


def led_to(trees: Trees, facts: FleetFacts) -> Said:
    """Where the step was to lead; nothing, where none was under way. Of repositories that are not here what is recorded
    tells which workspaces there are, until these are."""
    both = (trees.grafted(facts.grafts), trees.grafted(facts.regrafting))
    away = {graft.said[OF] for grafts in both for graft in grafts.by_directory.values() if graft.tree is None}
    led = {of: facts.grafts.get(of, {}) if of in away else said for of, said in facts.regrafting.items()}
    led = {of: said for of, said in led.items() if said}
    return led if led != facts.grafts else {}


class HalfGrafted:
    """Of one fleet (`regrafting`), whose own tree is `here`. `find`: what is recorded."""

    def __init__(self, trees: Trees, fleet: FleetRecord, find: FindRecorded) -> None:
        self._fleet, self._find, self._here = fleet, find, trees.at(fleet.commit)
        self._there = trees.at(fleet.commit, None, trees.grafted(fleet.regrafting))
        self._found = touched(self._there, self._here)

    def gone(self) -> frozenset[str]:
        """The workspaces that the step had taken away: nothing is recorded of them."""
        return frozenset(path for path in self._found.removed if not self._is_recorded(path, self._here))

    def bring(self, store: Store, stepper: Callable[..., Stepper], recorded: RecordedFleet) -> None:
        """Makes those that had come. `stepper`: see Making."""
        come = [path for path in self._found.appeared if self._is_recorded(path, self._there)]
        come = [path for path in come if tree.workspace_at(store, path) is None]
        if come:
            step = stepper(RECOVERY, self._fleet, self._fleet.commit, recorded=recorded, here=self._there)
            step.difference(self._there, come)

    def _is_recorded(self, path: str, where: WorkspaceTree) -> bool:
        place = where.find(path)
        return self._find(path, place.directory if place is not None else "") is not None
