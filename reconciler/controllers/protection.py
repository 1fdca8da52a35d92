"""Objects of storage that are being deleted stay while they are used: a claim by Pods on nodes, a volume by its claim,
a class of attributes by volumes and claims. Once they are not, this takes their finalizer away, and they go.

One controller for all workspaces it serves. Nothing is kept: whoever stops using something names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.registry.protection import FINALIZERS
from apiserver.storage.protocol import Store
from reconciler.controllers import disposal
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.served import Serves

Object = dict[str, Any]

PODS, CLAIMS, VOLUMES = "pods", "persistentvolumeclaims", "persistentvolumes"
ATTRIBUTES = "volumeattributesclasses.storage.k8s.io"
_DYING = b'"deletionTimestamp"'


class Protection(Controller[Key]):
    """Work items are keys of objects that are to go."""

    name = "protection"
    version = "1"
    resources = frozenset({*FINALIZERS, PODS})
    beyond = NO_RESOURCES
    shown = frozenset(FINALIZERS)

    def __init__(self, store: Store, serves: Serves) -> None:
        self._store, self._serves = store, serves

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if not self._serves(key.cluster):
            return
        if key.resource in FINALIZERS and entry.value is not None and _DYING in entry.value:
            yield key
        if entry.previous is not None:
            yield from _used(key, entry.before)

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record = self._store.get(key)
        if record is None or _DYING not in record.value:
            return None
        obj = orjson.loads(record.value)
        finalizer = FINALIZERS[key.resource]
        if not obj["metadata"].get("deletionTimestamp") or finalizer not in (obj["metadata"].get("finalizers") or ()):
            return None
        if self._in_use(key, obj):
            return None
        return disposal.write(self._store, disposal.replaced(record, disposal.without_finalizer(obj, finalizer)))

    def _in_use(self, key: Key, obj: Object) -> bool:
        if key.resource == VOLUMES:
            return bool((obj.get("status") or {}).get("phase") == "Bound")
        users = [(PODS, key.namespace)] if key.resource == CLAIMS else [(VOLUMES, ""), (CLAIMS, "")]
        return any(
            key in _used(record.key, orjson.loads(record.value))
            for resource, namespace in users
            for record in self._store.scan(resource, key.cluster, namespace or None).records
        )


def _used(key: Key, obj: Object) -> Iterator[Key]:
    """What the object uses, as far as it keeps that from going."""
    spec = obj.get("spec") or {}
    if key.resource == PODS and spec.get("nodeName"):
        for volume in spec.get("volumes") or ():
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if claim is None and volume.get("ephemeral") is not None and not _is_shut_down(obj):
                claim = f"{key.name}-{volume.get('name')}"
            if claim:
                yield Key(CLAIMS, key.cluster, key.namespace, str(claim))
    elif key.resource in (CLAIMS, VOLUMES):
        attributes = spec.get("volumeAttributesClassName")
        current = (obj.get("status") or {}).get("currentVolumeAttributesClassName")
        for name in {attributes, current} - {None, ""}:
            yield Key(ATTRIBUTES, key.cluster, "", str(name))


def _is_shut_down(pod: Object) -> bool:
    metadata = pod["metadata"]
    return bool(metadata.get("deletionTimestamp")) and metadata.get("deletionGracePeriodSeconds") == 0
