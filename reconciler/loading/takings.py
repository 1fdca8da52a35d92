"""What a step takes away: workspaces that are in its commit no more, each at once or, where something in it waits for
finalizers, in the end.

Called by steps when all others are judged and written.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Conflict, Op, Store
from reconciler.loading.changeset import ChangeSet, WorkspaceChanges
from reconciler.loading.handover import Handover
from reconciler.loading.leavers import Leavers
from reconciler.loading.world import World

_RETRIES = 20
_TOGETHER = 1000
"""Objects, about, that go in one transaction."""


class Takings:
    """Of one step."""

    def __init__(self, store: Store, world: World, leavers: Leavers, writes: Handover) -> None:
        self._store, self._world, self._leavers, self._writes = store, world, leavers, writes

    def take(self, going: Iterable[str], done: ChangeSet) -> list[str]:
        """Has them go, and says in `done` what became of each; the paths of workspaces that took something of them.
        Many go in one transaction, each wholly."""
        ops: list[Op] = []
        under_way: list[Future[list[int]]] = []
        bereft: dict[str, None] = {}
        for path in sorted(going, key=self._when_it_goes):
            record = self._world.record(path)
            if record is None:
                continue
            consumers = [consumer for consumer in self._world.consumers(path) if consumer != path]
            changes = self._leavers.take_away(record)
            if self._writes.keeps(changes):
                raise RuntimeError(f"a proposed commit removes workspace {path}")
            if path in self._leavers.paths:
                changes = self._depart(record, changes)
            else:
                ops += changes.ops()
            bereft.update(dict.fromkeys(consumers))
            done.add(changes)
            if len(ops) >= _TOGETHER:
                under_way = self._hand_over(ops, under_way)
                ops = []
        for written in self._hand_over(ops, under_way):
            written.result()
        for path in done.deleted:
            if path not in self._leavers.paths:
                self._world.gone(path)
            self._world.provides_anew(path)
        return [*bereft]

    def _when_it_goes(self, path: str) -> tuple[int, str]:
        """Children before their parents; else in the order in which the store has them, so that those whose objects
        stand on the same pages go together."""
        record = self._world.record(path)
        return -path.count(":"), record.cluster if record is not None else ""

    def _depart(self, record: WorkspaceRecord, changes: WorkspaceChanges) -> WorkspaceChanges:
        """Written at once, since what a workspace stands in follows from it; what was written in the end."""
        for _ in range(_RETRIES):
            try:
                if changes:
                    self._store.write(*changes.ops()).result()
                return changes
            except Conflict:
                changes = self._leavers.again(record)
        raise RuntimeError(f"workspace {record.path} is written to so often that it cannot be taken away")

    def _hand_over(self, ops: list[Op], before: list[Future[list[int]]]) -> list[Future[list[int]]]:
        """Has some be written while the next are looked up; what is under way then."""
        for written in before:
            written.result()
        return [self._store.write(*ops)]
