"""The writes of a step on their way into the store: one transaction a workspace, many of them under way together.

Called by steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future

from apiserver.storage.protocol import Conflict, Op, Store

_IN_FLIGHT = 1000
_TOGETHER = 64
"""Workspaces whose writes are handed over at once: the store's writer wakes once for them, and syncs them together."""


class Handover:
    """`fresh`: the store is being filled, and nobody can follow it yet. `written` is told of each workspace whose
    writes the store has."""

    def __init__(self, store: Store, written: Callable[[str], None], *, fresh: bool) -> None:
        self._store, self._written, self._fresh = store, written, fresh
        self._ready: list[tuple[str, list[Op]]] = []
        self._writes: list[tuple[str, Future[list[int]]]] = []

    def __bool__(self) -> bool:
        """Whether anything is on its way."""
        return bool(self._ready or self._writes)

    def add(self, path: str, ops: list[Op]) -> Iterator[str]:
        """A workspace's writes; yields paths as `settle` does, once there is much under way."""
        self._ready.append((path, ops))
        if len(self._ready) >= _TOGETHER:
            yield from self.settle(_IN_FLIGHT)

    def settle(self, under_way: int = 0) -> Iterator[str]:
        """Wait until no more than so many writes are under way. Yields the workspaces that somebody else wrote to
        meanwhile: nothing of theirs was written."""
        ready, self._ready = self._ready, []
        write = self._store.fill if self._fresh else self._store.write
        self._writes += [(path, write(*ops)) for path, ops in ready]
        settled = max(0, len(self._writes) - under_way)
        writes, self._writes = self._writes[:settled], self._writes[settled:]
        for path, future in writes:
            try:
                future.result()
                self._written(path)
            except Conflict:
                yield path
