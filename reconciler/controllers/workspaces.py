"""Workspaces that are made through the API where writes go to the store: they come, and they go with all that is in
them.

A controller of the main store. A Workspace that no directory stands behind gets its logical cluster here; one that is
deleted takes what is in it along, workspaces below it first. What waits for finalizers leaves as what a commit takes
away does (loading/departure), and is looked at again in the same way (awaited).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model import marks, paths
from apiserver.model.commits import NONE
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Check, Op, Record, Store, View
from reconciler.controllers import disposal
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.together import Together
from reconciler.loading import awaited, departure
from reconciler.loading.moment import Moment
from reconciler.loading.removal import at_once
from reconciler.loading.storedworkspaces import Unscheduled, coming

Object = dict[str, Any]

_DECLARED = f'"{marks.SOURCE_PATH}"'.encode()
_SYSTEM = marks.as_stored(marks.SYSTEM)
_DYING = b'"deletionTimestamp"'
_TOGETHER = 1024
"""Objects that go in one transaction, with some 128 workspaces: they take the store some 20 milliseconds."""
_LATER = 10.0
"""Seconds until a type that cannot be had is looked for again."""


class Workspaces(Controller[Key]):
    """By the key of a Workspace."""

    name = "workspaces"
    version = "1"
    resources = frozenset({WORKSPACES})

    def __init__(self, store: Store) -> None:
        self._store = store
        self._together = Together[Key](store, _TOGETHER)

    def hand_over(self) -> None:
        self._together.hand_over()

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        value, previous = entry.value, entry.previous or b""
        if value is None:
            # With its finalizer it went together with its logical cluster: no request takes it away so.
            if _DECLARED not in previous and not _has_finalizer(entry.before):
                yield entry.key
        elif _DECLARED not in value and (_DYING in value or b'"cluster":"' not in value or entry.previous is None):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        try:
            with self._store.view() as view:
                return self._reconciled(view, key)
        finally:
            self._together.looked_at(key)

    def _reconciled(self, view: View, key: Key) -> Future[list[int]] | None:
        parent = tree.workspace_of(view, key.cluster)
        if parent is None:
            return None  # it went with all that was in it
        there = tree.workspace_at(view, paths.join(parent.path, key.name))
        if there is not None and not there.stored:
            return None
        record = view.get(key)
        obj: Object | None = orjson.loads(record.value) if record is not None else None
        if there is not None and (obj is None or _stands_for_another(view, there, obj)):
            self.queue.add(key)
            return self._end(view, key, there, parent, record)
        if record is None or obj is None or _DECLARED in record.value or _SYSTEM in record.value:
            return None
        if not obj["metadata"].get("deletionTimestamp"):
            inside = tree.check_there(view, key.cluster)
            return self._make(record, parent, inside) if there is None else None
        if there is None:
            return self._let_go(record, obj)
        return self._end(view, key, there, parent, record)

    def _make(self, record: Record, parent: WorkspaceRecord, inside: Check) -> Future[list[int]] | None:
        if parent.leaves:
            return None
        made = coming(self._store, parent, record, _now())
        if isinstance(made, Unscheduled):
            self.queue.add_after(record.key, _LATER)
            made = made.ops(record, _now())
        return self._store.write(*made, inside) if made else None

    def _let_go(self, record: Record, obj: Object) -> Future[list[int]] | None:
        """One that goes before it ever had a logical cluster, or after."""
        if marks.WORKSPACE_FINALIZER not in (obj["metadata"].get("finalizers") or ()):
            return None
        made = disposal.without_finalizer(obj, marks.WORKSPACE_FINALIZER)
        return disposal.write(self._store, disposal.replaced(record, made))

    def _end(
        self, view: View, key: Key, there: WorkspaceRecord, parent: WorkspaceRecord, above: Record | None
    ) -> Future[list[int]] | None:
        """`above`: what stands for it in its parent."""
        if there.leaves:
            return None  # awaited sees what it waits for
        if departure.is_awaited(view, there):
            _, changes = departure.depart(view, there, parent, _now())
            return self._store.write(*changes.ops())
        return self._together.write(key, gone(view, there, above), 3 + view.number(there.cluster))


def gone(view: View, there: WorkspaceRecord, above: Record | None) -> list[Op]:
    """What takes a workspace away in which nothing waits, with the Workspace `above`; whatever a commit has in its
    place is looked at then."""
    asked = [awaited.note(there)] if there.errors else []
    return [*at_once(view, there, above), *asked]


def _stands_for_another(view: View, there: WorkspaceRecord, obj: Object) -> bool:
    """Whether the workspace was made for a Workspace of that name that is no more."""
    if (obj.get("spec") or {}).get("cluster") == there.cluster:
        return False  # only the server says that, and no workspace gets the name of another
    found = view.get(Key(LOGICAL_CLUSTERS, there.cluster, "", "cluster"))
    owner = (orjson.loads(found.value).get("spec") or {}).get("owner") or {} if found is not None else {}
    return bool(owner.get("uid", obj["metadata"]["uid"]) != obj["metadata"]["uid"])


def _has_finalizer(obj: Object) -> bool:
    return marks.WORKSPACE_FINALIZER in (obj.get("metadata", {}).get("finalizers") or ())


def _now() -> Moment:
    return Moment(NONE, int(time.time()))
