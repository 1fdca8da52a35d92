"""APIExports that are made through the API where writes go to the store: each gets an identity.

A controller of the main store. The key is in the Secret that an export names, of all that the workspace has; its own is
random, lies in `keys/` as that of an export in git does (loading/identities), and is served as that Secret. It goes
with the export: nobody can bring one back that no commit knows of.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model import clock, conditions, marks
from apiserver.model.keys import Key
from apiserver.model.storagenames import EXPORTS, SCHEMAS, SLICES
from apiserver.registry import codec, tree
from apiserver.registry.behaviours.ofkubernetes import SERVED_AS_KUBERNETES
from apiserver.registry.behaviours.sharing import IDENTITIES
from apiserver.registry.endpointslices import own_slice, wants_one
from apiserver.registry.exportspec import offered
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Check, Delete, Put, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.loading.consumers import is_stored
from reconciler.loading.identities import ExportIdentity, Identities, own_secret, secret_of
from reconciler.loading.statuses import complete
from reconciler.plan.bindings import export_status

Object = dict[str, Any]

_SECRETS = "secrets"
_SYSTEM = marks.as_stored(marks.SYSTEM)
_NAMESPACE: Object = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"labels": {"kubernetes.io/metadata.name": IDENTITIES}},
    "spec": {"finalizers": ["kubernetes"]},
    "status": {"phase": "Active"},
}


class APIExports(Controller[Key]):
    """By the key of an APIExport."""

    name = "apiexports"
    version = "3"
    resources = frozenset({EXPORTS, _SECRETS})
    shown = frozenset({EXPORTS})

    def __init__(self, store: Store, identities: Identities) -> None:
        self._store, self._identities = store, identities.of_made()

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        """A Secret may be what an export of its workspace waits for."""
        if entry.key.resource == _SECRETS:
            named = (entry.key.namespace, entry.key.name)
            for record in self._store.scan(EXPORTS, entry.key.cluster).records:
                export = orjson.loads(record.value)
                if secret_of(export) == named and is_stored(export):
                    yield record.key
        elif is_stored(entry.obj) if entry.value is not None else _may_be_made(entry.before):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        inside, record = tree.check_there(self._store, key.cluster), self._store.get(key)
        if record is None:
            return self._forget(key)
        export = orjson.loads(record.value)
        if not is_stored(export):
            return None
        there = export.get("status") or {}
        # What it says from the beginning bears its own time, what turns later that moment's.
        at = clock.now() if there.get("conditions") else export["metadata"]["creationTimestamp"]
        identity = self._identity(key, export, inside)
        found = export_status({}, identity.hash, at, identity.wrong, self._schemas(key, export))
        status = complete(found, EXPORTS, export, at)
        over = {SERVED_AS_KUBERNETES} - {c["type"] for c in status["conditions"]}
        kept = [c for c in there.get("conditions") or () if c["type"] not in over]
        told = conditions.merged(kept, status["conditions"])
        value = codec.encode({**export, "status": {**there, **status, "conditions": told}})
        self._slice(key, export, inside)
        return self._store.write(Put(key, value, record.revision, record.stamp)) if value != record.value else None

    def _schemas(self, key: Key, export: Object) -> list[Object]:
        """Those that are there by now."""
        keys = [Key(SCHEMAS, key.cluster, "", each.schema) for each in offered(export)]
        return [orjson.loads(r.value) for r in self._store.get_many(keys) if r is not None] if keys else []

    def _forget(self, key: Key) -> Future[list[int]] | None:
        """Of one that is gone."""
        self._identities.forget(key.cluster, key.name)
        secret = self._store.get(Key(_SECRETS, key.cluster, IDENTITIES, key.name))
        if secret is None or _SYSTEM not in secret.value:
            return None
        return self._store.write(Delete(secret.key, secret.revision))

    def _slice(self, key: Key, export: Object, inside: Check) -> None:
        """The endpoint slice that it has by itself goes with it."""
        own = Key(SLICES, key.cluster, "", key.name)
        if wants_one(export) and self._store.get(own) is None:
            uid = export["metadata"]["uid"]
            owner = {"apiVersion": export["apiVersion"], "kind": "APIExport", "name": key.name, "uid": uid}
            made = {**own_slice(key.name), "metadata": {"ownerReferences": [owner]}}
            Objects(self._store).create(own, made, runtime=True, inside=inside)

    def _identity(self, key: Key, export: Object, inside: Check) -> ExportIdentity:
        """What its key comes to; where that is its own, it is a Secret afterwards."""
        recorded, named = (export.get("status") or {}).get("identityHash", ""), secret_of(export)
        objects = Objects(self._store)
        secret = Key(_SECRETS, key.cluster, named.namespace, named.name)
        found = self._identities.of(key.cluster, export, recorded, objects.get(secret))
        if found.own:
            namespace = Key("namespaces", key.cluster, "", named.namespace)
            if self._store.get(namespace) is None:
                objects.create(namespace, _NAMESPACE, runtime=True, inside=inside)
            objects.create(secret, own_secret(named.name, found.own), runtime=True, inside=inside)
        return found


def _may_be_made(export: Object) -> bool:
    """Whether an export that is gone may have been made through the API. One that waited for something in the end, with
    its workspace or alone, says only that no file declares it."""
    annotations = export["metadata"].get("annotations") or {}
    return is_stored(export) or annotations.get(marks.ORIGIN) == marks.REMOVED
