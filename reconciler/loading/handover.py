"""What a step comes to on its way into the store: one transaction a workspace, many of them under way together. Those
that are new are one transaction together, and one each where somebody else wrote to any of them.

Called by steps; which of these a step uses is its way's (`ways`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import chain, groupby

from apiserver.storage import alike
from apiserver.storage.protocol import Conflict, Op, PutAlike, Store, Writer
from reconciler.loading.changeset import WorkspaceChanges, each_of

_IN_FLIGHT = 1000
_TOGETHER = 256
"""Workspaces whose writes are handed over at once: the store's writer wakes once for them, and syncs them together. A
page that several of them touch is written once; while somebody reads, each writing of it makes the file larger."""


class Handover:
    """Writes. `written` is told of each workspace whose writes the store has."""

    def __init__(self, store: Store, written: Callable[[str], None]) -> None:
        self._store, self._written = store, written
        self._ready: list[WorkspaceChanges | PutAlike] = []
        self._number = 0
        """Of workspaces that are ready."""
        self._writes: deque[tuple[list[WorkspaceChanges] | PutAlike, Future[list[int]]]] = deque()
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
        yield from self._add(changes, 1)

    def add_alike(self, op: PutAlike) -> Iterator[WorkspaceChanges]:
        """Those of several that are new and alike; yields as `add` does."""
        yield from self._add(op, len(op.rows))

    def _add(self, changes: WorkspaceChanges | PutAlike, number: int) -> Iterator[WorkspaceChanges]:
        self._ready.append(changes)
        self._number += number
        if self._number >= _TOGETHER:
            yield from self.settle(_IN_FLIGHT)

    def settle(self, under_way: int = 0) -> Iterator[WorkspaceChanges]:
        """Wait until no more than so many writes are under way. Yields those of workspaces that somebody else wrote to
        meanwhile: nothing of theirs was written."""
        ready, self._ready, self._number = self._ready, [], 0
        for together in _together(ready):
            self._writes.append((together, self._write(together)))
            self._under_way += _number_of(together)
        while self._under_way > under_way:
            together, future = self._writes.popleft()
            self._under_way -= _number_of(together)
            yield from self._settled(together, future)

    def _settled(
        self, together: list[WorkspaceChanges] | PutAlike, future: Future[list[int]]
    ) -> Iterator[WorkspaceChanges]:
        try:
            future.result()
        except Conflict:
            some = [*each_of(together)] if isinstance(together, PutAlike) else together
            if len(some) == 1 and some is together:
                yield some[0]
                return
            # New ones are written where nothing stands, so whatever came in between, none of them takes it away.
            for each in some:
                yield from self._settled([each], self._write([each]))
        else:
            found = together.rows if isinstance(together, PutAlike) else [(each.path, each) for each in together]
            for path, _ in found:
                self._written(path)

    def _write(self, together: list[WorkspaceChanges] | PutAlike) -> Future[list[int]]:
        if isinstance(together, PutAlike):
            return self._send(self._store, (together,))
        return self._send(self._store, chain.from_iterable(map(self._ops, together)))

    def _ops(self, changes: WorkspaceChanges) -> Iterable[Op]:
        """What is written of a workspace."""
        return changes.ops()

    def _send(self, store: Writer, ops: Iterable[Op]) -> Future[list[int]]:
        return store.write(*ops)


def _together(ready: list[WorkspaceChanges | PutAlike]) -> Iterator[list[WorkspaceChanges] | PutAlike]:
    """What is one transaction each."""
    for kind, some in groupby(ready, _kind):
        if isinstance(kind, tuple):
            yield alike.joined([each for each in some if isinstance(each, PutAlike)])
            continue
        found = [each for each in some if isinstance(each, WorkspaceChanges)]
        yield from [found] if kind else [[each] for each in found]


def _kind(changes: WorkspaceChanges | PutAlike) -> bool | tuple[object, ...]:
    """The same for what is one transaction if it comes one after the other; False for one that is alone."""
    return alike.common(changes) if isinstance(changes, PutAlike) else changes.new


def _number_of(together: list[WorkspaceChanges] | PutAlike) -> int:
    return len(together.rows) if isinstance(together, PutAlike) else len(together)


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
