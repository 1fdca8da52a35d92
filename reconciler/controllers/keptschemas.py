"""The end of schemas that are kept for consumers: each goes with the last binding that names it.

A controller of the main store. A binding may stop naming one by a request, with its workspace, or by taking what its
export offers by now; what a commit does to bindings the step looks after by itself (loading/keptschemas). A provider
that is held may be so for what its consumers were served with, so it is judged again.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS
from apiserver.registry import tree
from apiserver.registry.boundresources import recorded_by
from apiserver.registry.keptschemas import KEPT_SCHEMAS, is_named, key_of, ref_of_kept
from apiserver.storage.protocol import Delete, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.loading import awaited


class KeptSchemas(Controller[Key]):
    """By the key under which a schema is kept, or may be."""

    name = "keptschemas"
    version = "1"
    resources = frozenset({BINDINGS, KEPT_SCHEMAS})
    shown = frozenset({KEPT_SCHEMAS})

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.key.resource == KEPT_SCHEMAS:
            if entry.value is not None:
                yield entry.key
        elif entry.previous is not None:
            yield from map(key_of, recorded_by(entry.before) - recorded_by(entry.obj))

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        """What a recovery could not bring back may name any of them."""
        record = self._store.get(key)
        if record is None or is_named(self._store, ref_of_kept(key)) or tree.fleet(self._store).lost:
            return None
        provider = tree.workspace_of(self._store, key.cluster)
        held = provider is not None and provider.errors
        return self._store.write(Delete(key, record.revision), *([awaited.note(provider)] if provider and held else []))
