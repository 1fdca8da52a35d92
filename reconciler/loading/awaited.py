"""Workspaces that are judged again since something that they may have waited for has gone or come: a definition with
the names that another one claims, an object whose end stands between git and what it says by now, the Secret of an
identity.

No commit tells of that. Who sees it (controllers/awaited, keptsecrets) leaves a note in the store; the holder serves
the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from apiserver.model.keys import Internal, Key
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Conflict, Delete, Put, Store

_TOGETHER = 1000


def note(record: WorkspaceRecord) -> Put:
    """Asks for a workspace."""
    return Put(Key(Internal.AWAITED, record.cluster, "", ""), record.path.encode())


def waiting(store: Store) -> bool:
    """Whether there is anything to serve. Cheap."""
    return bool(store.scan(Internal.AWAITED, limit=1, count=False).records)


def serve(store: Store, judge_again: Callable[[Collection[str]], object]) -> None:
    """Has the workspaces looked at, by their paths. What is noted meanwhile is served another time."""
    while found := store.scan(Internal.AWAITED, limit=_TOGETHER, count=False).records:
        judge_again({note.value.decode() for note in found})
        for each in found:
            try:
                store.write(Delete(each.key, each.revision)).result()
            except Conflict:
                continue  # noted anew
