"""The decisions that are handed on: which sync target a Placement's namespaces run on, as far as the status branch
holds it. A row of the store for each Placement, so a start goes on with them and memory holds none.

Written by bindings.py, which tells whom they concern. A decision stands here from when it is durable until another one
is, or its Placement is gone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from apiserver.model.keys import Key
from apiserver.model.selectors import NOTHING, LabelSelector, from_object
from apiserver.model.tables import Table, row_key
from apiserver.registry.indexes import PLACEMENTS
from apiserver.storage.paging import rows
from apiserver.storage.protocol import DeleteRow, PutRow, Row, Store

_KEPT = 1_024
"""Workspaces that are not looked up again, those that have none included: entries of one come together."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A durable decision. `target`: key of the sync target; `leaving`: keys of those moved away from. `nothing_new`:
    what has no copy on the target gets none."""

    target: str = ""
    leaving: tuple[str, ...] = ()
    selector: LabelSelector = NOTHING
    nothing_new: bool = False

    def encode(self) -> bytes:
        return orjson.dumps([self.target, self.leaving, _selector(self.selector), self.nothing_new])

    @staticmethod
    def decode(value: bytes) -> Standing:
        target, leaving, selector, nothing_new = orjson.loads(value)
        return Standing(target, tuple(leaving), from_object(selector), nothing_new)


class Standings:
    """By logical cluster and Placement. One process writes them, and asks one of these. Safe from every thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, Mapping[str, Standing]] = OrderedDict()
        self._any: bool | None = None
        """Whether there are any; None: nobody has looked."""
        self._lock = threading.Lock()

    def begin(self) -> None:
        """The store may say something else."""
        with self._lock:
            self._known.clear()
            self._any = None

    def any(self) -> bool:
        return bool(self._store.scan_rows(Table.STANDINGS, limit=1))

    def of(self, cluster: str) -> Mapping[str, Standing]:
        """Of the Placements of a logical cluster, by name."""
        if self._any is False:
            return {}
        with self._lock:
            if self._any is None:
                self._any = self.any()
            found = self._known.get(cluster)
            if found is None:
                there = self._store.scan_rows(Table.STANDINGS, row_key(cluster, ""))
                found = {_placement(row).name: Standing.decode(row.value) for row in there}
                self._keep(cluster, found)
            return found

    def put(self, cluster: str, placement: str, standing: Standing | None) -> None:
        """None: there is none any more. It is on disk then."""
        row = row_key(cluster, placement)
        gone = DeleteRow(Table.STANDINGS, row)
        with self._lock:
            self._store.write(
                PutRow(Table.STANDINGS, row, standing.encode()) if standing is not None else gone
            ).result()
            self._known.pop(cluster, None)
            self._any = self._any or standing is not None or None

    def all(self) -> Iterator[Key]:
        """The Placements that have one."""
        return (_placement(row) for row in rows(self._store, Table.STANDINGS))

    def _keep(self, cluster: str, found: Mapping[str, Standing]) -> None:
        if len(self._known) >= _KEPT:
            self._known.popitem(last=False)
        self._known[cluster] = found


def _placement(row: Row) -> Key:
    cluster, name = row.key.split("\0")
    return Key(PLACEMENTS, cluster, "", name)


def _selector(selector: LabelSelector) -> dict[str, object] | None:
    if selector.nothing:
        return None
    told = [{"key": r.key, "operator": r.operator, "values": sorted(r.values)} for r in selector.requirements]
    return {"matchExpressions": told}
