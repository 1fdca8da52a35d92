"""What a placement decision is made from, read from the store.

Called by the placements controller, and by review, which asks what a commit would do before anybody serves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry import tree
from apiserver.registry.kinds import KindTable
from apiserver.registry.objects import Objects
from reconciler.controllers.bindings import NAMESPACES
from reconciler.controllers.locations import LOCATIONS
from reconciler.controllers.placementindex import PlacementIndex
from reconciler.controllers.uses import Uses
from reconciler.plan import placement as plan
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.state import STATEFUL
from reconciler.plan.syncable import NEVER_NAMESPACES, OPTIONAL, SYNCED

Object = dict[str, Any]


class Kinds(Protocol):
    """Which kinds a workspace serves; the registry's catalog."""

    def kinds(self, cluster: str) -> KindTable: ...


@dataclass(frozen=True, slots=True)
class PlacementSources:
    """What is read. `find`: where the SyncTarget with a key stands; `seen`: what is known of how it answers."""

    objects: Objects
    kinds: Kinds
    find: Callable[[str], Key | None]
    uses: Uses
    seen: Callable[[str], plan.Seen]


class Situations:
    """`tolerance`: seconds that a target may be silent."""

    def __init__(self, places: PlacementSources, index: PlacementIndex, tolerance: float) -> None:
        self._places, self._index, self._tolerance = places, index, tolerance

    def of(self, key: Key, obj: Object) -> plan.Situation | None:
        """Of a Placement as it is stored. None: what the decision rests on is not loaded, so it stands as it is."""
        world, store = self._places, self._places.objects.store
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
            tolerance=self._tolerance,
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
        kinds = self._places.kinds.kinds(cluster)
        for namespace in sorted(namespaces):
            for resource, kind in STATEFUL.items():
                served = kinds.preferred(resource.group, resource.resource)
                storage = served.storage if served is not None else ""
                records = self._places.objects.store.scan(storage, cluster, namespace).records if storage else ()
                found += [f"{kind} {namespace}/{record.key.name}" for record in records]
        return found

    def _locations(self, cluster: str, path: str) -> tuple[list[Object], list[Object]]:
        """The Locations of a logical cluster ("": none) that the workspace at `path` may use, and the others."""
        usable: list[Object] = []
        barred: list[Object] = []
        for location in self._places.objects.list(LOCATIONS, cluster) if cluster else ():
            may = self._places.uses.may_use(cluster, location["metadata"]["name"], path)
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
        before = tree.workspace_at(self._places.objects.store, recorded) if recorded else None
        return all(w is None or w.served for w in (workspace, before))

    def _target(self, obj: Object, cluster: str, path: str) -> plan.Target:
        seen = self._places.seen(sync_target_key(cluster, obj["metadata"]["name"]))
        return plan.Target.of(obj, cluster, path, seen)

    def _known(self, target: str) -> plan.Target | None:
        place = self._places.find(target)
        obj = self._places.objects.get(place) if place is not None else None
        if place is None or obj is None:
            return None
        workspace = tree.workspace_of(self._places.objects.store, place.cluster)
        return self._target(obj, place.cluster, workspace.path if workspace else place.cluster)


def needed(kinds: KindTable) -> dict[GroupResource, str]:
    """The workload kinds that a workspace has bound, with the identity hash in their storage name."""
    bound = (k for k in kinds.all() if k.group_resource in SYNCED - OPTIONAL and not k.custom)
    return {k.group_resource: k.storage.partition(":")[2] for k in bound}
