"""Placements: decide, record, and hand the decision on once it is durable.

A decision is written to the Placement (annotation, status, conditions), waits until the status branch holds it, and
only then reaches the syncers (decisions.py): no cluster is written to on the strength of a decision that a crash would
forget. Deciding itself is plan/placement.py's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.model import clock, conditions, marks
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Internal, Key, storage_name
from apiserver.model.kinds import GroupResource
from apiserver.model.storagenames import BINDINGS, SYNC_TARGETS
from apiserver.registry import tree
from apiserver.registry.kinds import KindTable
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
from reconciler.controllers.targets import TargetIndex
from reconciler.controllers.uses import Uses
from reconciler.plan import placement as plan
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.state import STATEFUL
from reconciler.plan.syncable import NEVER_NAMESPACES, OPTIONAL, SYNCED

PLACEMENTS = "placements.scheduling.kcp.io"

Object = dict[str, Any]


class Kinds(Protocol):
    """Which kinds a workspace serves; the registry's catalog."""

    def kinds(self, cluster: str) -> KindTable: ...


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
        self.decisions = Decisions(world.objects, world.bindings, world.durable)
        self.grants = Grants(world.objects.store, world.uses, self._index, self.look)

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

    def reconcile(self, key: Key) -> None:
        if not tree.fleet(self._world.objects.store).loaded:
            self.queue.hold(key)
            return
        answers: list[plan.PlacementOutcome] = []

        def change(obj: Object) -> Object | None:
            situation = self._situation(key, obj)
            if situation is None:
                self.queue.hold(key)
                return None
            answers.append(plan.decide(obj, situation))
            return written(obj, answers[-1])

        self._world.objects.update(key, change)
        if answers and answers[-1].again is not None:
            self.queue.add_after(key, answers[-1].again + 0.01)

    def _situation(self, key: Key, obj: Object) -> plan.Situation | None:
        """None: what the decision rests on is not loaded, so it stands as it is."""
        world, store = self._world, self._world.objects.store
        mine = tree.workspace_of(store, key.cluster)
        path = (obj.get("spec") or {}).get("locationWorkspace") or (mine.path if mine else "")
        workspace = tree.workspace_at(store, path)
        current, leaving = plan.recorded(obj)
        if (current or leaving) and not self._readable(obj, workspace):
            return None
        cluster = workspace.cluster if workspace and workspace.served else ""
        targets = [self._target(t, cluster, path) for t in world.objects.list(SYNC_TARGETS, cluster)] if cluster else []
        known = (self._known(k) for k in {current, *leaving} - {""})
        namespaces = (selectable(n) for n in world.objects.list(NAMESPACES, key.cluster))
        selector = selector_of(obj)
        selected = [name for name, labels in namespaces if selector.matches(labels) and name not in NEVER_NAMESPACES]
        usable, barred = self._locations(cluster, mine.path if mine else "")
        return plan.Situation(
            workspace=mine.path if mine else "",
            path=path,
            locations=usable,
            barred=barred if current else (),
            targets=targets,
            now=time.time(),
            tolerance=self._settings.threshold + self._settings.tolerance,
            known={t.key: t for t in known if t is not None},
            needed=needed(world.kinds.kinds(key.cluster)),
            load=self._index.load({t.key for t in targets}, current),
            bound=bool(selected),
            state=lambda: self._state(key.cluster, selected),
            revoked=bool(current) and self._revoked(current, mine.path if mine else ""),
        )

    def _state(self, cluster: str, namespaces: Iterable[str]) -> list[str]:
        """What holds state in these namespaces, in words."""
        found: list[str] = []
        kinds = self._world.kinds.kinds(cluster)
        for namespace in sorted(namespaces):
            for resource, kind in STATEFUL.items():
                served = kinds.preferred(resource.group, resource.resource)
                storage = served.storage if served is not None else ""
                records = self._world.objects.store.scan(storage, cluster, namespace).records if storage else ()
                found += [f"{kind} {namespace}/{record.key.name}" for record in records]
        return found

    def _locations(self, cluster: str, path: str) -> tuple[list[Object], list[Object]]:
        """The Locations of a logical cluster ("": none) that the workspace at `path` may use, and the others."""
        usable: list[Object] = []
        barred: list[Object] = []
        for location in self._world.objects.list(LOCATIONS, cluster) if cluster else ():
            may = self._world.uses.may_use(cluster, location["metadata"]["name"], path)
            (usable if may else barred).append(location)
        return usable, barred

    def _revoked(self, target: str, path: str) -> bool:
        """Whether the workspace at `path` may use none of the Locations, if any, that hold the sync target."""
        known = self._known(target)
        if known is None:
            return False
        usable, barred = self._locations(known.cluster, path)
        return any(plan.instances(loc, [known]) for loc in barred) and not any(
            plan.instances(loc, [known]) for loc in usable
        )

    def _readable(self, obj: Object, workspace: tree.WorkspaceRecord | None) -> bool:
        """Whether the workspaces of the locations (named and recorded) can be read: an unread one proves nothing."""
        recorded = ((obj.get("status") or {}).get("selectedLocation") or {}).get("path", "")
        before = tree.workspace_at(self._world.objects.store, recorded) if recorded else None
        return all(w is None or w.served for w in (workspace, before))

    def _target(self, obj: Object, cluster: str, path: str) -> plan.Target:
        seen = self._world.heartbeats.seen(sync_target_key(cluster, obj["metadata"]["name"]))
        return plan.Target.of(obj, cluster, path, seen)

    def _known(self, target: str) -> plan.Target | None:
        place, obj = self._world.targets.place(target), self._world.targets.get(target)
        if place is None or obj is None:
            return None
        workspace = tree.workspace_of(self._world.objects.store, place.cluster)
        return self._target(obj, place.cluster, workspace.path if workspace else place.cluster)


def needed(kinds: KindTable) -> dict[GroupResource, str]:
    """The workload kinds that a workspace has bound, with the identity hash in their storage name."""
    bound = (k for k in kinds.all() if k.group_resource in SYNCED - OPTIONAL and not k.custom)
    return {k.group_resource: k.storage.partition(":")[2] for k in bound}


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
