"""What went, gathered until nothing more goes: an Event for all that a commit took away, by its number.

Called by notices. Of objects that files declared it is told where they stood, of workspaces in the one above.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from apiserver.model import marks, paths
from apiserver.model.counts import counted
from apiserver.model.keys import Internal, Key
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.controllers.entry import Entry
from reconciler.plan.happened import OBJECTS_DELETED, WORKSPACES_DELETED
from reconciler.plan.notices import About, Notice

_DELETED, _GONE = "~deleted", "~gone"
"""As the resource of a key: what went in a workspace; workspaces that went of it."""
OF_DELETIONS = frozenset({_DELETED, _GONE})
_NAMED = 5
"""Names of workspaces that are told."""
_MANY = 10
"""Objects that have to go at once to be told of."""
_DECLARED = f'"{marks.SOURCE_PATH}"'.encode()


class _Went:
    """Deletions that are gathered. `first`: the revision of the first of them; `last`: when the last was told of."""

    __slots__ = ("count", "first", "last", "names")

    def __init__(self, first: int) -> None:
        self.first, self.count, self.last, self.names = first, 0, 0.0, list[str]()


class Departed:
    """From the thread that reads the log and those that work. `where`: the LogicalCluster of a workspace, by the
    logical cluster's name; `gather`: seconds without another deletion after which they are told of."""

    def __init__(
        self, store: Store, where: Callable[[str], About | None], gather: float, now: Callable[[], float]
    ) -> None:
        self._store, self._where, self._gather, self._now = store, where, gather, now
        self._lock = threading.Lock()
        self._went: dict[Key, _Went] = {}

    def keys_of(self, entry: Entry) -> Iterator[Key]:
        """Notes an entry that deletes; the key under which that is to be told."""
        previous = entry.previous or b""
        if entry.key.resource == Internal.WORKSPACE:
            path = tree.path_of(previous)
            above = paths.parent(path)
            if not tree.is_stored(previous) and above is not None:
                yield self._add(Key(_GONE, above, "", ""), entry.revision, paths.base(path))
        elif _DECLARED in previous:
            yield self._add(Key(_DELETED, entry.key.cluster, "", ""), entry.revision, "")

    def _add(self, key: Key, revision: int, name: str) -> Key:
        with self._lock:
            went = self._went.setdefault(key, _Went(revision))
            went.count, went.last = went.count + 1, self._now()
            if name and len(went.names) < _NAMED:
                went.names.append(name)
        return key

    def told(self, key: Key) -> Notice | float | None:
        """What is to be said, or in how many seconds to ask again; None where nothing is."""
        with self._lock:
            went = self._went.get(key)
            wait = went.last + self._gather - self._now() if went is not None else 0.0
            if wait > 0:
                return wait
            self._went.pop(key, None)
        record = tree.workspace_named(self._store, key.cluster) if went is not None else None
        where = self._where(record.cluster) if record is not None else None
        if went is None or record is None or where is None or (key.resource == _DELETED and went.count < _MANY):
            return None
        if key.resource == _GONE:
            more = f" and {went.count - len(went.names)} more" if went.count > len(went.names) else ""
            said = WORKSPACES_DELETED, f"{counted(went.count, 'workspace')} went: {', '.join(went.names)}{more}"
        else:
            objects = counted(went.count, "object")
            said = OBJECTS_DELETED, f"{objects} that files declared went with commit {record.commit:.10}"
        return Notice(record.cluster, where, *said, revision=went.first)
