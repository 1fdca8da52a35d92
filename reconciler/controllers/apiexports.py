"""APIExports that are made through the API where writes go to the store: each gets an identity.

A controller of the main store. The key is in the Secret that an export names, of all that the workspace has; its own is
random, lies in `keys/` as that of an export in git does (loading/identities), and is served as that Secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.behaviours.sharing import IDENTITIES
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Put, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.loading.consumers import is_stored
from reconciler.loading.identities import ExportIdentity, Identities, own_secret, secret_of
from reconciler.loading.offers import EXPORTS
from reconciler.loading.statuses import complete
from reconciler.plan.bindings import export_status

Object = dict[str, Any]

_SECRETS = "secrets"
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
    version = "2"
    resources = frozenset({EXPORTS, _SECRETS})
    shown = frozenset({EXPORTS})

    def __init__(self, store: Store, identities: Identities) -> None:
        self._store, self._identities = store, identities

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        """A Secret may be what an export of its workspace waits for."""
        if entry.key.resource == _SECRETS:
            found = self._store.scan(EXPORTS, entry.key.cluster).records
            named = (entry.key.namespace, entry.key.name)
            yield from (record.key for record in found if secret_of(orjson.loads(record.value)) == named)
        elif entry.value is not None and is_stored(entry.obj):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record = self._store.get(key)
        export = orjson.loads(record.value) if record is not None else None
        if record is None or export is None or not is_stored(export):
            return None
        there, at = export.get("status") or {}, export["metadata"]["creationTimestamp"]
        identity = self._identity(key, export)
        status = complete(export_status({}, identity.hash, at, identity.wrong), EXPORTS, export, at)
        told = conditions.merged(there.get("conditions"), status["conditions"])
        value = codec.encode({**export, "status": {**there, **status, "conditions": told}})
        return self._store.write(Put(key, value, record.revision, record.stamp)) if value != record.value else None

    def _identity(self, key: Key, export: Object) -> ExportIdentity:
        """What its key comes to; where that is its own, it is a Secret afterwards."""
        recorded, named = (export.get("status") or {}).get("identityHash", ""), secret_of(export)
        objects = Objects(self._store)
        secret = Key(_SECRETS, key.cluster, named.namespace, named.name)
        found = self._identities.of(key.cluster, export, recorded, objects.get(secret))
        if found.own:
            namespace = Key("namespaces", key.cluster, "", named.namespace)
            if self._store.get(namespace) is None:
                objects.create(namespace, _NAMESPACE, runtime=True)
            objects.create(secret, own_secret(named.name, found.own), runtime=True)
        return found
