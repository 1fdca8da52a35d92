"""Who asked to have a workspace's source looked at, and what they are told (apiserver/registry/looks).

Kept by sourcing. A workspace that stands on the source of one above means that one. However often somebody asks, a
source is visited as seldom as the timetable has it, and there is one answer a workspace.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from apiserver.registry import looks, tree
from apiserver.registry.looks import Looked
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.layout.grafts import OF
from reconciler.loading.sourcelist import Judged, ListedSource
from reconciler.sourcing.followed import Found

_MOST = 1000
"""Workspaces that somebody waits for at a time; of more nobody is told."""


class SourceAsking:
    """Methods may be called from every thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._asked: dict[str, tuple[str, float]] = {}
        """By path of who asked the path whose source that is, and when they did."""

    def ask(self, path: str) -> str:
        """The path of the workspace whose source it is; "" where there is none."""
        record = tree.workspace_at(self._store, path)
        found = self._owner(record) if record is not None else ""
        with self._lock:
            if found and len(self._asked) < _MOST:
                self._asked.setdefault(path, (found, time.time()))
        return found

    def waits(self) -> bool:
        return bool(self._asked)

    def answer(self, sources: Iterable[ListedSource], found: dict[str, Found], judged: Judged) -> None:
        """Those of which is known by now what became of their source."""
        with self._lock:
            asked = dict(self._asked)
        if not asked:
            return
        by_path = {source.path: source for source in sources if source.is_wanted}
        for path, (owner, when) in asked.items():
            record, source = tree.workspace_at(self._store, path), by_path.get(owner)
            if record is None or source is None:
                self._drop(path)
                continue
            seen = found.get(source.name, Found())
            if seen.began >= when and (answer := _answer(record, source, seen, judged)) is not None:
                self._store.write(looks.put_looked(answer, record.cluster))
                self._drop(path)

    def _owner(self, record: WorkspaceRecord) -> str:
        of = (record.follows or record.source).get(OF, "")
        above = tree.workspace_of(self._store, of) if of else record
        return above.path if above is not None and (record.follows or record.source) else ""

    def _drop(self, path: str) -> None:
        with self._lock:
            self._asked.pop(path, None)


def _answer(record: WorkspaceRecord, source: ListedSource, seen: Found, judged: Judged) -> Looked | None:
    """None where the head that was seen is still to be judged."""
    served = record.source.get("commit", "").rpartition(".")[2]
    if seen.reason:
        return Looked(seen.began, seen.commit, served, f"{seen.reason}: {seen.fault}; {seen.hint}")
    if judged.get(source.path) != (source.ref, seen.commit) and served != seen.commit:
        return None
    return Looked(seen.began, seen.commit, served, "; ".join(record.errors[:1]))
