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
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.rest_options import Complete, Vet, complete_nothing
from apiserver.registry.served import ServedKind

Object = dict[str, Any]
Completes = Callable[[Place, Object], None]

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


def _protected(kind: ServedKind) -> Completes:
    """Of a kind whose objects stay while they are used."""
    finalizer = protection.FINALIZERS[kind.storage]

    def complete(place: Place, obj: Object) -> None:  # noqa: ARG001
        metadata = obj.get("metadata")
        found = metadata.get("finalizers") or [] if isinstance(metadata, dict) else None
        if isinstance(metadata, dict) and isinstance(found, list) and finalizer not in found:
            metadata["finalizers"] = [*found, finalizer]

    return complete


def _all(plugin: Completes) -> Callable[[ServedKind], Completes]:
    """A plugin that does the same for all its kinds."""
    return lambda kind: plugin  # noqa: ARG005


_COMPLETING: dict[str, Callable[[ServedKind], Completes]] = {
    "ServiceAccount": _all(serviceaccounts.complete),
    "Priority": _all(priority.complete),
    "DefaultTolerationSeconds": _all(_tolerate),
    "RuntimeClass": _all(runtimeclasses.complete),
    topology.PLUGIN: _all(topology.complete),
    "TaintNodesByCondition": _all(_taint),
    "DefaultStorageClass": _all(classes.complete_claim),
    "DefaultIngressClass": _all(classes.complete_ingress),
    "StorageObjectInUseProtection": _protected,
}
_VETTING: dict[str, Callable[[Place, Object, Object | None], None]] = {
    "Priority": priority.vet,
    "PersistentVolumeClaimResize": classes.vet_claim,
}
"""By names, which plugins.py lists. Which kinds they look at is in the kinds' entries (registry/builtins)."""


def completing(kind: ServedKind, place: Place, disabled: frozenset[str] = frozenset()) -> Complete:
    """Of new objects of the kind. `disabled`: names of plugins to do without."""
    entry = ENTRIES.get(kind.storage) if kind.of_cluster else None
    plugins = [_COMPLETING[name](kind) for name in entry.plugins if name not in disabled] if entry is not None else []
    if not plugins:
        return complete_nothing

    def complete(obj: Object) -> None:
        for plugin in plugins:
            plugin(place, obj)

    return complete


def vetting(kind: ServedKind, place: Place, others: Vet, disabled: frozenset[str] = frozenset()) -> Vet:
    """`others` and what of the cluster a write of the kind depends on."""
    entry = ENTRIES.get(kind.storage) if kind.of_cluster else None
    if entry is None or not entry.vetted_by or entry.vetted_by in disabled:
        return others
    plugin = _VETTING[entry.vetted_by]

    def vet(new: Object, live: Object | None) -> None:
        others(new, live)
        plugin(place, new, live)

    return vet
