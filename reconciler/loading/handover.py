"""What a step comes to on its way into the store: one transaction a workspace, many of them under way together.

Called by steps; which of these a step uses is its way's (`ways`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future

from apiserver.storage.protocol import Conflict, Store, Writer
from reconciler.loading.changeset import WorkspaceChanges

_IN_FLIGHT = 1000
_TOGETHER = 64
"""Workspaces whose writes are handed over at once: the store's writer wakes once for them, and syncs them together."""


class Handover:
    """Writes. `written` is told of each workspace whose writes the store has."""

    def __init__(self, store: Store, written: Callable[[str], None]) -> None:
        self._store, self._written = store, written
        self._ready: list[WorkspaceChanges] = []
        self._writes: list[tuple[WorkspaceChanges, Future[list[int]]]] = []

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
        self._writes += [(changes, self._write(self._store, changes)) for changes in ready]
        settled = max(0, len(self._writes) - under_way)
        writes, self._writes = self._writes[:settled], self._writes[settled:]
        for changes, future in writes:
            try:
                future.result()
                self._written(changes.path)
            except Conflict:
                yield changes

    def _write(self, store: Writer, changes: WorkspaceChanges) -> Future[list[int]]:
        return store.write(*changes.ops())


class Filling(Handover):
    """Writes into a store that holds nothing yet, so that nobody can follow it."""

    def _write(self, store: Writer, changes: WorkspaceChanges) -> Future[list[int]]:
        return store.fill(*changes.ops())


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
