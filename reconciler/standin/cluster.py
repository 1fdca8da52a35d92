"""What belongs to the target as a cluster: first namespaces, new ones, definitions, volume claims."""

from __future__ import annotations

from typing import Any

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.registry import strategy
from apiserver.storage.protocol import Conflict
from reconciler.standin.world import CLUSTER, World, creation, with_status

NAMESPACES = "namespaces"
CLAIMS = "persistentvolumeclaims"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
FIRST = ("default", "kube-system")

Object = dict[str, Any]


def bootstrap(world: World) -> None:
    """The namespaces that every cluster has."""
    for name in FIRST:
        if world.store.get(Key(NAMESPACES, CLUSTER, "", name)) is None:
            obj = {
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            }
            try:
                world.write([creation(NAMESPACES, obj)])
            except Conflict:
                continue  # another process was first


def reconcile_namespace(world: World, obj: Object) -> None:
    """One that is there is Active until it is deleted."""
    if not obj["metadata"].get("deletionTimestamp") and not (obj.get("status") or {}).get("phase"):
        world.write(with_status(NAMESPACES, obj, {**(obj.get("status") or {}), "phase": "Active"}))


def reconcile_definition(world: World, obj: Object) -> None:
    """A CustomResourceDefinition is served once it is established."""
    if not obj["metadata"].get("deletionTimestamp"):
        world.write(with_status(DEFINITIONS, obj, strategy.crd_status(obj, clock.now())))


def reconcile_claim(world: World, obj: Object) -> None:
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
