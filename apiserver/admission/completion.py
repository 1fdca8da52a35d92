"""What a new object gets of its cluster before it is checked, and what else of the cluster a write depends on: the
admission plugins that a kube-apiserver has on by default, in its order and by its names. A server may do without some,
as a kube-apiserver may.

By store name: objects of kinds that are bound from an export go to clusters, which do this themselves. What is set here
nobody owns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.admission import classes, priority, runtimeclasses, serviceaccounts, topology
from apiserver.admission.place import Place, spec_of
from apiserver.registry import protection
from apiserver.registry.behaviours import tolerations
from apiserver.registry.rest_options import Complete, Vet, complete_nothing
from apiserver.registry.served import ServedKind

Object = dict[str, Any]

_NOT_READY = {"key": tolerations.NOT_READY, "effect": "NoSchedule"}


def _tolerate(place: Place, pod: Object) -> None:  # noqa: ARG001
    tolerations.default(spec_of(pod))


def _taint(place: Place, node: Object) -> None:  # noqa: ARG001
    """No Pod is scheduled to a new node before somebody says that it is ready."""
    spec = spec_of(node)
    found = spec.get("taints") or []
    if not isinstance(found, list) or not all(isinstance(t, dict) for t in found):
        return
    if not any((t.get("key"), t.get("effect")) == tuple(_NOT_READY.values()) for t in found):
        spec["taints"] = [*found, dict(_NOT_READY)]


def _protect(finalizer: str) -> Callable[[Place, Object], None]:
    def complete(place: Place, obj: Object) -> None:  # noqa: ARG001
        metadata = obj.get("metadata")
        found = metadata.get("finalizers") or [] if isinstance(metadata, dict) else None
        if isinstance(metadata, dict) and isinstance(found, list) and finalizer not in found:
            metadata["finalizers"] = [*found, finalizer]

    return complete


_PRIORITY, _IN_USE = "Priority", "StorageObjectInUseProtection"
_NEW: dict[str, dict[str, Callable[[Place, Object], None]]] = {
    "pods": {
        "ServiceAccount": serviceaccounts.complete,
        _PRIORITY: priority.complete,
        "DefaultTolerationSeconds": _tolerate,
        "RuntimeClass": runtimeclasses.complete,
        topology.PLUGIN: topology.complete,
    },
    "nodes": {"TaintNodesByCondition": _taint},
    "persistentvolumeclaims": {
        "DefaultStorageClass": classes.complete_claim,
        _IN_USE: _protect(protection.FINALIZERS["persistentvolumeclaims"]),
    },
    "ingresses.networking.k8s.io": {"DefaultIngressClass": classes.complete_ingress},
    **{
        resource: {_IN_USE: _protect(finalizer)}
        for resource, finalizer in protection.FINALIZERS.items()
        if resource != "persistentvolumeclaims"
    },
}
_VETTED: dict[str, tuple[str, Callable[[Place, Object, Object | None], None]]] = {
    priority.CLASSES: (_PRIORITY, priority.vet),
    "persistentvolumeclaims": ("PersistentVolumeClaimResize", classes.vet_claim),
}
PLUGINS = frozenset({name for plugins in _NEW.values() for name in plugins} | {name for name, _ in _VETTED.values()})


def completing(kind: ServedKind, place: Place, disabled: frozenset[str] = frozenset()) -> Complete:
    """Of new objects of the kind. `disabled`: names of plugins to do without."""
    known = _NEW.get(kind.storage, {}) if kind.builtin else {}
    plugins = [plugin for name, plugin in known.items() if name not in disabled]
    if not plugins:
        return complete_nothing

    def complete(obj: Object) -> None:
        for plugin in plugins:
            plugin(place, obj)

    return complete


def vetting(kind: ServedKind, place: Place, others: Vet, disabled: frozenset[str] = frozenset()) -> Vet:
    """`others` and what of the cluster a write of the kind depends on."""
    name, plugin = _VETTED.get(kind.storage, ("", None))
    if plugin is None or name in disabled or not kind.builtin:
        return others

    def vet(new: Object, live: Object | None) -> None:
        others(new, live)
        plugin(place, new, live)

    return vet
