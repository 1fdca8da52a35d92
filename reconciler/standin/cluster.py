"""What belongs to the target as a cluster: what it starts with, new namespaces, volume claims."""

from __future__ import annotations

from typing import Any

from apiserver.model import clock
from apiserver.model.kinds import kind_of
from apiserver.registry import strategy
from apiserver.registry.kinds import target_builtins
from apiserver.storage.protocol import Op
from reconciler.plan import bootstrap as starts
from reconciler.plan import computed
from reconciler.standin.world import StandInWorld, creation, key_of, with_status

NAMESPACES = "namespaces"
CLAIMS = "persistentvolumeclaims"

Object = dict[str, Any]


def bootstrap(world: StandInWorld) -> None:
    """What every cluster starts with, as far as it is not there; in one write."""
    kinds = target_builtins()
    missing: list[Op] = []
    for obj in (computed.default_namespace(), *starts.objects(kinds.groups(), clock.now())):
        kind = kinds.by_kind(*kind_of(obj))
        assert kind is not None
        if world.store.get(key_of(kind.storage, obj)) is None:
            strategy.prepare(kind, obj)
            missing.append(creation(kind.storage, obj))
    world.write(missing)


def reconcile_namespace(world: StandInWorld, obj: Object) -> None:
    """One that is there is Active until it is deleted."""
    if not obj["metadata"].get("deletionTimestamp") and not (obj.get("status") or {}).get("phase"):
        world.write(with_status(NAMESPACES, obj, {**(obj.get("status") or {}), "phase": "Active"}))


def reconcile_claim(world: StandInWorld, obj: Object) -> None:
    """There is room for every volume."""
    status = obj.get("status") or {}
    if obj["metadata"].get("deletionTimestamp") or status.get("phase") == "Bound":
        return
    spec = obj["spec"]
    bound: Object = {"phase": "Bound", "accessModes": spec.get("accessModes") or []}
    requests = (spec.get("resources") or {}).get("requests")
    if requests:
        bound["capacity"] = requests
    world.write(with_status(CLAIMS, obj, bound))
