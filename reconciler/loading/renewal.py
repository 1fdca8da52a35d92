"""What ships with another version of Treeplane, into the workspaces that have it: one by one, last of all work.

Called by loader whenever nothing else is to be done, until others want something. Meanwhile some workspaces have what
the earlier version shipped and some what this one does: both is data, so both is read and judged as it stands. How far
it is stands in a table, so whoever is started after a crash goes on from there; a workspace that was reached and not
noted is judged again, and nothing is written.

1. Those whose content ships (`root`, `root:compute`). What of that others take is other than it was (types, exports)
   is told in the very transaction that changes it, as a row, and nobody is judged for it yet.
2. Each workspace that starts with Kubernetes' kinds, or has one of those types.
3. Each that binds one of those exports.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import orjson

from apiserver.model import paths
from apiserver.model.storagenames import TYPES
from apiserver.model.tables import Table, row_key
from apiserver.registry import tree
from apiserver.registry.kinds import KUBERNETES
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.paging import rows
from apiserver.storage.protocol import DeleteRow, Op, PutRow, Row, Store
from reconciler.loading.changeset import WorkspaceChanges
from reconciler.loading.handover import Handover
from reconciler.loading.offers import Offers
from reconciler.loading.whole import ships
from reconciler.loading.world import World
from reconciler.plan import system

PROVIDERS: Final = (paths.ROOT, *system.shipped_workspaces())
"""The workspaces whose own content ships."""

log = logging.getLogger(__name__)

_PROGRESS, _TOLD = "progress", "told"
_PAGE = 1000


class Telling(Handover):
    """Writes, of a workspace whose types or exports are other ones, that this is so."""

    def _ops(self, changes: WorkspaceChanges) -> Iterable[Op]:
        if not changes.provides:
            return super()._ops(changes)
        types = {key.name for key in changes.written() if key.resource == TYPES}
        row = row_key(_TOLD, changes.path)
        before = self._store.get_row(Table.RENEWAL, row)
        types |= set(orjson.loads(before)) if before is not None else set()
        return (*changes.ops(), PutRow(Table.RENEWAL, row, orjson.dumps(sorted(types))))


class Judges(NamedTuple):
    """What loader lends: each judges workspaces whole, as they are served. `providers`: those whose content ships, and
    nobody who follows from them."""

    one: Callable[[str], object]
    providers: Callable[[Collection[str]], object]


class _At(NamedTuple):
    """How far it is. `ships`: what is being written; `sweep`: how many tables were gone through; `after`: the last row
    of the next one that was looked at, "" if none was."""

    ships: str
    sweep: int
    after: str

    def put(self) -> PutRow:
        return PutRow(Table.RENEWAL, _PROGRESS, orjson.dumps([*self]))


class Renewal:
    """Of one fleet, by one thread."""

    def __init__(self, store: Store, judges: Judges) -> None:
        self._store, self._judges = store, judges
        self._done = False

    def go_on(self, is_wanted: Callable[[], bool]) -> bool:
        """Goes on until all is done, or `is_wanted` says that there is something else to do, which is asked after each
        workspace; whether all is."""
        if self._done or not tree.fleet(self._store).loaded:
            return self._done
        at = self._begin()
        if at is not None:
            self._store.write(at.put())  # before anything is: whoever is started after a crash has to know
            for reached in self._way(at):
                written = self._store.write(reached.put())
                if is_wanted():
                    written.result()
                    return False
            self._end()
        self._done = True
        return True

    def _begin(self) -> _At | None:
        """Where it goes on; None if there is nothing to do."""
        found, here = self._store.get_row(Table.RENEWAL, _PROGRESS), ships()
        at = _At(*orjson.loads(found)) if found is not None else None
        if at is not None and at.ships == here:
            return at
        return _At(here, 0, "") if at is not None or tree.fleet(self._store).ships != here else None

    def _end(self) -> None:
        fleet = tree.fleet(self._store)
        left = [DeleteRow(Table.RENEWAL, row.key) for row in rows(self._store, Table.RENEWAL)]
        self._store.write(tree.put_fleet(replace(fleet, ships=ships())), *left).result()
        log.info("every workspace has what this version ships")

    def _way(self, at: _At) -> Iterator[_At]:
        """Does what is left, and says after each workspace how far it is."""
        if not at.sweep:
            self._judges.providers(PROVIDERS)
            at = _At(at.ships, 1, "")
            yield at
        told = {path: self._told(path) for path in PROVIDERS}
        sweeps: list[tuple[Table, str, Callable[[Row], str]]] = [(Table.WORKSPACES, "", self._concerned(told))]
        sweeps += [(Table.CONSUMERS, row_key(path, ""), _consumer) for path in PROVIDERS if told[path] is not None]
        for number, (table, prefix, concerned) in enumerate(sweeps, 1):
            if number < at.sweep:
                continue
            yield from self._sweep(at, table, prefix, concerned)
            at = _At(at.ships, number + 1, "")
            yield at

    def _sweep(self, at: _At, table: Table, prefix: str, concerned: Callable[[Row], str]) -> Iterator[_At]:
        """`concerned`: the workspace that a row names and that is to be judged, "" for none."""
        after = at.after or None
        while page := self._store.scan_rows(table, prefix, after=after, limit=_PAGE):
            for row in page:
                path = concerned(row)
                if path and path not in PROVIDERS and tree.workspace_at(self._store, path) is not None:
                    self._judges.one(path)
                    yield at._replace(after=row.key)
            after = page[-1].key
            yield at._replace(after=after)

    def _told(self, path: str) -> frozenset[str] | None:
        """The types of a provider that are other ones, none if it is only its exports; None if it is neither."""
        row = self._store.get_row(Table.RENEWAL, row_key(_TOLD, path))
        return frozenset(orjson.loads(row)) if row is not None else None

    def _concerned(self, told: dict[str, frozenset[str] | None]) -> Callable[[Row], str]:
        changed = {(path, name) for path, names in told.items() for name in names or ()}
        follows = World(self._store, _Settled()).follows_types(changed)

        def concerned(row: Row) -> str:
            record = WorkspaceRecord.decode(*row)
            return row.key if record.builtins == KUBERNETES or (changed and follows(record)) else ""

        return concerned


class _Settled:
    """Turns of a world in which nobody is being judged."""

    def settled(self, _path: str) -> bool:
        return True

    def offers(self, path: str) -> Offers:
        raise AssertionError(f"what {path} offers is in the store")


def _consumer(row: Row) -> str:
    return row.key.rpartition("\0")[2]
