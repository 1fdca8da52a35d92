"""APIExports that are made through the API where writes go to the store: each gets an identity.

A controller of the main store. An identity key is random and lies in `keys/`, as that of an export in git does
(loading/identities).
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

import orjson

from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.storage.protocol import Put, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.loading.consumers import is_stored
from reconciler.loading.identities import Identities
from reconciler.loading.offers import EXPORTS
from reconciler.loading.statuses import complete
from reconciler.plan.bindings import export_status


class APIExports(Controller[Key]):
    """By the key of an APIExport."""

    name = "apiexports"
    version = "1"
    resources = frozenset({EXPORTS})

    def __init__(self, store: Store, identities: Identities) -> None:
        self._store, self._identities = store, identities

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None and is_stored(entry.obj):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record = self._store.get(key)
        export = orjson.loads(record.value) if record is not None else None
        if record is None or export is None or not is_stored(export):
            return None
        there, at = export.get("status") or {}, export["metadata"]["creationTimestamp"]
        known = self._identities.hash_of(key.cluster, key.name, there.get("identityHash", ""))
        status = complete(export_status({}, known, at), EXPORTS, export, at)
        told = conditions.merged(there.get("conditions"), status["conditions"])
        value = codec.encode({**export, "status": {**there, **status, "conditions": told}})
        return self._store.write(Put(key, value, record.revision, record.stamp)) if value != record.value else None
