"""Placements: decide, record, and hand the decision on once it is durable.

A decision is written to the Placement (annotation, status, conditions), waits until the status branch holds it, and
only then reaches the syncers (decisions.py): no cluster is written to on the strength of a decision that a crash would
forget. Deciding itself is plan/placement.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.model import clock, conditions, marks
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Internal, Key, storage_name
from apiserver.model.storagenames import BINDINGS, SYNC_TARGETS
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from reconciler.controllers.bindings import NAMESPACES, Bindings
from reconciler.controllers.controller import Controller
from reconciler.controllers.decisions import Decisions
from reconciler.controllers.entry import Entry
from reconciler.controllers.grants import Grants
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.locations import LOCATIONS
from reconciler.controllers.placementindex import PlacementIndex
from reconciler.controllers.settings import TargetSettings
from reconciler.controllers.situations import Kinds, PlacementSources, Situations
from reconciler.controllers.targets import TargetIndex
from reconciler.controllers.uses import Uses
from reconciler.plan import placement as plan
from reconciler.plan.state import STATEFUL

PLACEMENTS = "placements.scheduling.kcp.io"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlacementWorld:
    """What the controller reads and tells."""

    objects: Objects
    kinds: Kinds
    targets: TargetIndex
    heartbeats: Heartbeats
    bindings: Bindings
    uses: Uses
    durable: Callable[[int], None]
    """Blocks until the status branch holds everything up to this store revision."""


class Placements(Controller[Key]):
    """Decides. `decisions` and `grants` are the controllers that work with it, with queues of their own: what waits for
    the status branch, or looks through RBAC, holds up no decision."""

    name = "placements"
    resources = frozenset({
        PLACEMENTS, LOCATIONS, SYNC_TARGETS, NAMESPACES, BINDINGS, Internal.WORKSPACE,
        *(f"{storage_name(kind.group, kind.resource)}:*" for kind in STATEFUL),
    })  # fmt: skip
    shown = frozenset({PLACEMENTS})

    def __init__(self, world: PlacementWorld, settings: TargetSettings) -> None:
        self._world, self._settings = world, settings
        self.version = f"1 {settings.threshold:g} {settings.tolerance:g}"
        self._index = PlacementIndex(world.objects.store)
        places = PlacementSources(world.objects, world.kinds, world.targets.place, world.uses, world.heartbeats.seen)
        self._situations = Situations(places, self._index, settings.threshold + settings.tolerance)
        self.decisions = Decisions(world.objects, world.bindings, world.durable)
        self.grants = Grants(world.objects.store, world.uses, self._index, self.look)
        world.heartbeats.on_return(self._look_around)

    def begin(self) -> None:
        self._world.uses.forget()

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == PLACEMENTS:
            return (key,) if entry.value is not None else ()
        if not self._world.bindings.placed:
            return ()
        if key.resource == Internal.WORKSPACE:
            where = {tree.path_of(said) for said in (entry.value, entry.previous) if said}  # it may have moved
            return {found for path in where for found in self._index.looking(path, key.cluster)}
        if key.resource == LOCATIONS:
            return self._index.around(key.cluster)
        if key.resource == SYNC_TARGETS:
            return {*self._index.around(key.cluster), *self._index.on(sync_target_key(key.cluster, key.name))}
        if key.resource in (NAMESPACES, BINDINGS) or entry.value is None:
            # Where the last of a namespace's state is gone, nothing holds it any more.
            return self._index.of(key.cluster)
        return ()

    def left(self, key: Key, target: str) -> None:
        """The syncer removed the last copy from a target that this Placement had left."""

        def change(obj: Object) -> Object:
            _, leaving = plan.recorded(obj)
            _record(obj, {marks.LEAVING: ",".join(k for k in leaving if k != target)})
            return obj

        self._world.objects.update(key, change)

    def look(self, key: Key) -> None:
        """Decide anew, if there is anything to decide."""
        self.queue.add(key)

    def _look_around(self, place: Key) -> None:
        """A sync target is a candidate again."""
        for key in self._index.around(place.cluster):
            self.queue.add(key)

    def reconcile(self, key: Key) -> None:
        if not tree.fleet(self._world.objects.store).loaded:
            self.queue.hold(key)
            return
        answers: list[plan.PlacementOutcome] = []

        def change(obj: Object) -> Object | None:
            situation = self._situations.of(key, obj)
            if situation is None:
                self.queue.hold(key)
                return None
            answers.append(plan.decide(obj, situation))
            return written(obj, answers[-1])

        self._world.objects.update(key, change)
        if answers and answers[-1].again is not None:
            self.queue.add_after(key, answers[-1].again + 0.01)


def written(obj: Object, outcome: plan.PlacementOutcome) -> Object:
    """The Placement with the decision recorded on it."""
    decision = outcome.decision
    _record(
        obj,
        {
            marks.SYNC_TARGET: decision.key if decision else "",
            marks.LEAVING: ",".join(outcome.leaving),
            marks.DECIDED_FROM: outcome.made_from,
            marks.NOTHING_NEW: "true" if outcome.nothing_new else "",
        },
    )
    status = obj.setdefault("status", {})
    status["phase"] = outcome.phase
    status.pop("selectedLocation", None)
    status.pop("syncTarget", None)
    if decision is not None:
        status["selectedLocation"] = {"path": decision.path, "locationName": decision.location}
        status["syncTarget"] = {"path": decision.target_path, "name": decision.target, "key": decision.key}
    now = clock.now()
    told = [{**c, "lastTransitionTime": now} for c in outcome.conditions]
    status["conditions"] = conditions.merged(status.get("conditions"), told)
    return obj


def _record(obj: Object, annotations: Mapping[str, str]) -> None:
    held = obj["metadata"].setdefault("annotations", {})
    for name, value in annotations.items():
        if value:
            held[name] = value
        else:
            held.pop(name, None)
