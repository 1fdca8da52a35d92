"""What came into a workspace while it was taken away, and that nobody would find any more.

A controller of the main store. A workspace goes with what was known to be in it, in one transaction; a request or a
loop may have put something there a moment before. Whoever makes objects checks in the write itself that their workspace
is there (registry/rest_checks), so nothing comes after that transaction: one look behind it is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from apiserver.model.keys import Internal
from apiserver.model.tables import Table, row_key
from apiserver.registry import tree
from apiserver.storage.paging import rows
from apiserver.storage.protocol import NEVER, Check, Delete, DeleteRow, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry


class Stragglers(Controller[str]):
    """By logical cluster name."""

    name = "stragglers"
    version = "1"
    resources = frozenset({Internal.WORKSPACE})
    shown = frozenset()

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys_of(self, entry: Entry) -> Iterable[str]:
        if entry.value is None and self._left(entry.key.cluster):
            yield entry.key.cluster

    def _left(self, cluster: str) -> bool:
        return any(not each.startswith("~") for each in self._store.resources(cluster))

    def reconcile(self, key: str) -> Future[list[int]] | None:
        """Two facts: the log says that the workspace was taken away (no recovery is in the log), and there is none of
        this name now, which holds when the rest goes."""
        place = tree.cluster_key(key)
        left = [each for each in self._store.keys(key) if not each.resource.startswith("~")]
        if not left or self._store.get(place) is not None:
            return None
        ports = rows(self._store, Table.NODE_PORTS, row_key(key, ""))
        held = [DeleteRow(Table.NODE_PORTS, row.key) for row in ports]
        return self._store.write(Check(place, NEVER), *map(Delete, left), *held)
