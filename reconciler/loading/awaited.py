"""Workspaces that are judged again since something has gone that they may have waited for: a definition with the names
that another one claims, an object whose end stands between git and what it says by now.

No commit tells of that. Who sees it (controllers/awaited) leaves a note in the store; the holder serves the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from apiserver.model.keys import Internal, Key
from apiserver.registry import tree
from apiserver.storage.protocol import Conflict, Delete, Put, Store

_TOGETHER = 1000


def note(cluster: str) -> Put:
    """Asks for the workspace with this logical cluster name."""
    return Put(Key(Internal.AWAITED, cluster, "", ""), b"")


def waiting(store: Store) -> bool:
    """Whether there is anything to serve. Cheap."""
    return bool(store.scan(Internal.AWAITED, limit=1, count=False).records)


def serve(store: Store, judge_again: Callable[[Collection[str]], object]) -> None:
    """Has the workspaces judged, by their paths. What is noted meanwhile is served another time."""
    while found := store.scan(Internal.AWAITED, limit=_TOGETHER, count=False).records:
        records = [tree.workspace_of(store, note.key.cluster) for note in found]
        judge_again({record.path for record in records if record is not None})
        for each in found:
            try:
                store.write(Delete(each.key, each.revision)).result()
            except Conflict:
                continue  # noted anew
