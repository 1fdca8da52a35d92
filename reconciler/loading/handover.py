"""What a step comes to on its way into the store: one transaction a workspace, many of them under way together. Those
that are new are one transaction together, and one each where somebody else wrote to any of them.

Called by steps; which of these a step uses is its way's (`ways`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import chain, groupby
from operator import attrgetter

from apiserver.storage.protocol import Conflict, Op, Store, Writer
from reconciler.loading.changeset import WorkspaceChanges

_IN_FLIGHT = 1000
_TOGETHER = 256
"""Workspaces whose writes are handed over at once: the store's writer wakes once for them, and syncs them together. A
page that several of them touch is written once; while somebody reads, each writing of it makes the file larger."""


class Handover:
    """Writes. `written` is told of each workspace whose writes the store has."""

    def __init__(self, store: Store, written: Callable[[str], None]) -> None:
        self._store, self._written = store, written
        self._ready: list[WorkspaceChanges] = []
        self._writes: deque[tuple[list[WorkspaceChanges], Future[list[int]]]] = deque()
        self._under_way = 0

    def __bool__(self) -> bool:
        """Whether anything is on its way."""
        return bool(self._ready or self._writes)

    @property
    def keeps_back(self) -> bool:
        """Whether all is kept back for now."""
        return False

    def keeps(self, _changes: WorkspaceChanges) -> bool:
        """Whether it is kept back instead of being written."""
        return False

    def released(self) -> list[WorkspaceChanges]:
        """What was kept back: from now on all is written."""
        return []

    def add(self, changes: WorkspaceChanges) -> Iterator[WorkspaceChanges]:
        """A workspace's; yields as `settle` does, once there is much under way."""
        self._ready.append(changes)
        if len(self._ready) >= _TOGETHER:
            yield from self.settle(_IN_FLIGHT)

    def settle(self, under_way: int = 0) -> Iterator[WorkspaceChanges]:
        """Wait until no more than so many writes are under way. Yields those of workspaces that somebody else wrote to
        meanwhile: nothing of theirs was written."""
        ready, self._ready = self._ready, []
        for is_new, some in groupby(ready, attrgetter("new")):
            found = [*some]
            for together in [found] if is_new else [[each] for each in found]:
                self._writes.append((together, self._write(together)))
                self._under_way += len(together)
        while self._under_way > under_way:
            together, future = self._writes.popleft()
            self._under_way -= len(together)
            yield from self._settled(together, future)

    def _settled(self, together: list[WorkspaceChanges], future: Future[list[int]]) -> Iterator[WorkspaceChanges]:
        try:
            future.result()
        except Conflict:
            if len(together) == 1:
                yield together[0]
                return
            # New ones are written where nothing stands, so whatever came in between, none of them takes it away.
            for each in together:
                yield from self._settled([each], self._write([each]))
        else:
            for each in together:
                self._written(each.path)

    def _write(self, together: list[WorkspaceChanges]) -> Future[list[int]]:
        return self._send(self._store, chain.from_iterable(map(self._ops, together)))

    def _ops(self, changes: WorkspaceChanges) -> Iterable[Op]:
        """What is written of a workspace."""
        return changes.ops()

    def _send(self, store: Writer, ops: Iterable[Op]) -> Future[list[int]]:
        return store.write(*ops)


class Filling(Handover):
    """Writes into a store that holds nothing yet, so that nobody can follow it."""

    def _send(self, store: Writer, ops: Iterable[Op]) -> Future[list[int]]:
        return store.fill(*ops)


class KeepingBack(Handover):
    """Writes nothing before it is released: the commit may still not become the branch's."""

    def __init__(self, store: Store, written: Callable[[str], None]) -> None:
        super().__init__(store, written)
        self._kept: list[WorkspaceChanges] | None = []

    @property
    def keeps_back(self) -> bool:
        return self._kept is not None

    def keeps(self, _changes: WorkspaceChanges) -> bool:
        if self._kept is not None:
            self._kept.append(_changes)
        return self._kept is not None

    def released(self) -> list[WorkspaceChanges]:
        found, self._kept = self._kept or [], None
        return found
