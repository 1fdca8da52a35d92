"""Placements: decide, record, and hand the decision on once it is durable.

A decision is written to the Placement (annotation, status, conditions), waits until the status branch holds it, and
only then reaches the syncers (Bindings): no cluster is written to on the strength of a decision that a crash would
forget. Deciding itself is plan/placement.py's.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.model import clock, conditions, marks
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Internal, Key
from apiserver.model.kinds import GroupResource
from apiserver.registry import codec, tree
from apiserver.registry.kinds import KindTable
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change
from reconciler.controllers.bindings import NAMESPACES, Bindings, Standing
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.locations import LOCATIONS
from reconciler.controllers.runtime import Informer, Loop, WorkQueue
from reconciler.controllers.settings import TargetSettings
from reconciler.controllers.targets import SYNC_TARGETS, TargetIndex
from reconciler.controllers.uses import RBAC, Uses
from reconciler.plan import placement as plan
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.state import STATEFUL, is_stateful
from reconciler.plan.syncable import NEVER_NAMESPACES, OPTIONAL, SYNCED

PLACEMENTS = "placements.scheduling.kcp.io"
API_BINDINGS = "apibindings.apis.kcp.io"

Object = dict[str, Any]


class Kinds(Protocol):
    """Which kinds a workspace serves; the registry's catalog."""

    def kinds(self, cluster: str) -> KindTable: ...


@dataclass(frozen=True, slots=True)
class World:
    """What the controller reads and tells."""

    objects: Objects
    kinds: Kinds
    targets: TargetIndex
    heartbeats: Heartbeats
    bindings: Bindings
    uses: Uses
    durable: Callable[[int], None]
    """Blocks until the status branch holds everything up to this store revision."""


class Placements:
    def __init__(self, world: World, informer: Informer, settings: TargetSettings) -> None:
        self._world, self._settings = world, settings
        self._index = _Index()
        self._loaded = False
        self._standing = threading.Lock()
        self._queue: WorkQueue[Key] = WorkQueue()
        self._handing: WorkQueue[Key] = WorkQueue()
        self._granting: WorkQueue[str] = WorkQueue()
        self._loops: tuple[Loop[Any], ...] = (
            Loop("placements", self._queue, self._reconcile),
            Loop("decisions", self._handing, self._hand_on),
            Loop("uses", self._granting, self._look_at_concerned),
        )
        informer.on(frozenset({PLACEMENTS}), self.placement_changed)
        informer.on(frozenset({LOCATIONS, SYNC_TARGETS}), self._location_changed)
        informer.on(RBAC, lambda change: self._granting.add(change.key.cluster))
        informer.on(frozenset({NAMESPACES, API_BINDINGS}), self._content_changed)
        informer.on(frozenset({Internal.WORKSPACE}), self._workspace_changed)
        informer.on(None, self._state_changed)
        informer.on_gap(self.load)

    def load(self) -> None:
        """Look at every Placement, in key order: the same world decides the same."""
        if not tree.fleet(self._world.objects.store).loaded:
            return
        self._loaded = True
        self._world.uses.forget()
        gone = set(self._index.placements())
        for obj in self._world.objects.list(PLACEMENTS):
            key = Key(PLACEMENTS, obj["metadata"]["annotations"]["kcp.io/cluster"], "", obj["metadata"]["name"])
            self._index.put(key, obj)
            self._queue.add(key)
            gone.discard(key)
        for key in gone:
            # Its deletion was in a part of the log that is gone, and so is the reason.
            self._index.drop(key)
            self._withdraw(key, explained=False)

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        for loop in self._loops:
            loop.stop()

    def left(self, key: Key, target: str) -> None:
        """The syncer removed the last copy from a target that this Placement had left."""

        def change(obj: Object) -> Object:
            _, leaving = plan.recorded(obj)
            _record(obj, {marks.LEAVING: ",".join(k for k in leaving if k != target)})
            return obj

        self._world.objects.update(key, change)

    def look(self, key: Key) -> None:
        """Decide anew, if there is anything to decide."""
        self._queue.add(key)

    def busy(self) -> bool:
        """Whether anything is being decided or handed on."""
        return bool(len(self._queue) or len(self._handing) or len(self._granting))

    def placement_changed(self, change: Change) -> None:
        """A Placement came, changed or went."""
        if change.value is None:
            previous = codec.decode(change.previous, 0) if change.previous else None
            self._index.drop(change.key)
            explained = previous is not None and deliberate(previous)
            self._withdraw(change.key, explained=explained)
        else:
            self._index.put(change.key, codec.decode(change.value, change.revision))
        self._queue.add(change.key)

    def _withdraw(self, key: Key, *, explained: bool) -> None:
        with self._standing:
            self._world.bindings.withdraw(key.cluster, key.name, explained=explained)

    def _location_changed(self, change: Change) -> None:
        for key in self._index.lookers(change.key.cluster):
            self._queue.add(key)

    def _content_changed(self, change: Change) -> None:
        for key in self._index.of(change.key.cluster):
            self._queue.add(key)

    def _state_changed(self, change: Change) -> None:
        """Where the last of a namespace's state is gone, nothing holds it any more."""
        if change.value is None and is_stateful(change.key.resource):
            self._content_changed(change)

    def _workspace_changed(self, change: Change) -> None:
        for key in self._index.lookers(tree.path_of(change.value or change.previous or b"")):
            self._queue.add(key)

    def _look_at_concerned(self, cluster: str) -> None:
        """RBAC changed in a workspace: those that may use its Locations might be others now."""
        paths = self._world.uses.concerned(cluster)
        if paths is None:
            for key in self._index.lookers(cluster):
                self._queue.add(key)
            return
        for path in paths:
            workspace = tree.workspace_at(self._world.objects.store, path)
            for key in self._index.looking(workspace.cluster, cluster) if workspace is not None else ():
                self._queue.add(key)

    def _reconcile(self, key: Key) -> None:
        if not tree.fleet(self._world.objects.store).loaded:
            return
        answers: list[plan.Outcome] = []

        def change(obj: Object) -> Object | None:
            situation = self._situation(key, obj)
            if situation is None:
                return None
            answers.append(plan.decide(obj, situation))
            return written(obj, answers[-1])

        obj = self._world.objects.update(key, change)
        if obj is None:
            # The event of its deletion withdraws it: that tells why it is gone, which cannot be seen here.
            self._index.drop(key)
            return
        self._index.put(key, obj)
        self._handing.add(key)
        if answers and answers[-1].again is not None:
            self._queue.add_after(key, answers[-1].again + 0.01)

    def _hand_on(self, key: Key) -> None:
        obj = self._world.objects.get(key)
        if obj is None:
            return
        target, leaving = plan.recorded(obj)
        annotations = obj["metadata"].get("annotations") or {}
        standing = Standing(target, leaving, selector_of(obj), nothing_new=marks.NOTHING_NEW in annotations)
        if self._world.bindings.standings(key.cluster).get(key.name) == standing:
            return
        self._world.durable(int(obj["metadata"]["resourceVersion"]))
        with self._standing:
            # Deleted meanwhile: its withdrawal came, or waits for the lock.
            if self._world.objects.get(key) is not None:
                self._world.bindings.set(key.cluster, key.name, standing)

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
        places = (world.targets.place(k) for k in (current, *leaving) if k)
        self._index.looks(key, path, cluster, *(p.cluster for p in places if p is not None))
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
            load=self._index.load(key),
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


def deliberate(obj: Object) -> bool:
    """Whether the disappearance of this stored object is a deletion: git declared it, or the API or a controller made
    it. What came from keys/ or was computed may be missing for other reasons."""
    annotations = obj["metadata"].get("annotations") or {}
    from_keys = str(annotations.get(marks.SOURCE_PATH, "")).startswith("keys/")
    declared = marks.SOURCE_COMMIT in annotations and not from_keys
    return declared or annotations.get(marks.ORIGIN) == marks.RUNTIME


def needed(kinds: KindTable) -> dict[GroupResource, str]:
    """The workload kinds that a workspace has bound, with the identity hash in their storage name."""
    bound = (k for k in kinds.all() if k.group_resource in SYNCED - OPTIONAL and not k.custom)
    return {k.group_resource: k.storage.partition(":")[2] for k in bound}


def written(obj: Object, outcome: plan.Outcome) -> Object:
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


class _Index:
    """Placements by what they depend on, so that a change wakes only those concerned."""

    def __init__(self) -> None:
        self._of: dict[str, set[Key]] = {}
        self._looked: dict[Key, frozenset[str]] = {}
        self._lookers: dict[str, set[Key]] = {}
        self._targets: dict[Key, str] = {}
        self._load: Counter[str] = Counter()
        self._lock = threading.Lock()

    def put(self, key: Key, obj: Object) -> None:
        with self._lock:
            self._count(key, plan.recorded(obj)[0])
            self._of.setdefault(key.cluster, set()).add(key)

    def looks(self, key: Key, *places: str) -> None:
        """What the Placement's decision was made from: logical clusters and workspace paths."""
        with self._lock:
            self._look(key, frozenset(places) - {""})

    def drop(self, key: Key) -> None:
        with self._lock:
            self._count(key, "")
            self._look(key, frozenset())
            self._of.get(key.cluster, set()).discard(key)

    def placements(self) -> Iterable[Key]:
        with self._lock:
            return sorted(key for keys in self._of.values() for key in keys)

    def of(self, cluster: str) -> Iterable[Key]:
        return self._sorted(self._of, cluster)

    def looking(self, cluster: str, place: str) -> Iterable[Key]:
        """Those of a logical cluster that depend on another, or on a workspace path."""
        with self._lock:
            return sorted(key for key in self._of.get(cluster, ()) if place in self._looked.get(key, ()))

    def lookers(self, place: str) -> Iterable[Key]:
        """Those that depend on a logical cluster or workspace path."""
        return self._sorted(self._lookers, place)

    def load(self, without: Key) -> Mapping[str, int]:
        """Placements on each target, by key."""
        with self._lock:
            found = dict(self._load)
            mine = self._targets.get(without, "")
            if mine:
                found[mine] -= 1
            return found

    def _sorted(self, table: Mapping[str, set[Key]], place: str) -> Iterable[Key]:
        if place not in table:
            return ()
        with self._lock:
            return sorted(table[place])

    def _count(self, key: Key, target: str) -> None:
        self._load[self._targets.pop(key, "")] -= 1
        if target:
            self._targets[key] = target
        self._load[target] += 1

    def _look(self, key: Key, places: frozenset[str]) -> None:
        for gone in self._looked.pop(key, frozenset()) - places:
            self._lookers[gone].discard(key)
        for place in places:
            self._lookers.setdefault(place, set()).add(key)
        if places:
            self._looked[key] = places
