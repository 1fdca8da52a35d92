"""Garbage collection: what all owners have left goes too; dependents before owners where the deletion asks for it.

One controller for all workspaces of a store. Kubernetes' rules: an owner is the object of that kind and name
with that UID, in the dependent's namespace or without one; a reference to nobody is dangling. Foreground deletion waits
for dependents whose reference says blockOwnerDeletion, and unblocks circles; `orphan` takes the references out.

What git declares is never collected, never waited for and never altered as a dependent (see disposal): its file says
who owns it, and only a commit takes it away. As an owner it is like any other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import BINDINGS, CRDS
from apiserver.registry import codec, deletion, indexes
from apiserver.registry.kindtable import KindTable
from apiserver.registry.rest_options import (
    BACKGROUND,
    FOREGROUND,
    FOREGROUND_FINALIZER,
    ORPHAN,
    ORPHAN_FINALIZER,
    DeleteOptions,
)
from apiserver.storage.protocol import Record, Store
from reconciler.controllers.controller import EVERYTHING, NO_RESOURCES, Controller
from reconciler.controllers.disposal import declared_by, release, replaced, write
from reconciler.controllers.entry import Entry
from reconciler.controllers.owners import MENTION, Reference, dependents, has_dependents, references_of
from reconciler.controllers.standing import Classes, Invalid, OwnerLookup, UndecidedOwner

Object = dict[str, Any]

_DYING = b'"deletionTimestamp"'
_COMMIT_SECONDS = 0.1
"""After which a change that is to be a commit is looked for."""
_WAITING = (b'"foregroundDeletion"', b'"orphan"')


class Garbage(Controller[Key]):
    """`kinds` of a logical cluster, as they are served now."""

    name = "garbage"
    version = "1"
    resources = EVERYTHING | {Internal.WORKSPACE}
    shown = EVERYTHING
    beyond = NO_RESOURCES

    def __init__(self, store: Store, kinds: Callable[[str], KindTable]) -> None:
        self._store = store
        self._kinds = kinds
        self._foreground: dict[str, dict[Key, str]] = {}
        """By cluster: owners that wait for their dependents, with their UIDs; found in the index of what is ending."""
        self._by_uid: dict[tuple[str, str], Key] = {}
        self._undecided: dict[str, set[Key]] = {}
        """By cluster: dependents to look at again when its kinds change. A restart looks at each of them again."""
        self._free = ""
        """The logical cluster that was found last to have nothing with an owner, until an entry says that it has."""
        self._lock = threading.Lock()
        self._standing = OwnerLookup(store, kinds)

    # -- what is heard

    def begin(self) -> None:
        self._foreground.clear()
        self._by_uid.clear()
        self._undecided.clear()
        self._free = ""
        for found in self._store.indexed(indexes.ENDING):
            record = self._store.get(found.key)
            if record is not None and _WAITING[0] in record.value:
                self._wait(found.key, orjson.loads(record.value)["metadata"])

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == Internal.WORKSPACE:
            if entry.value is None:
                yield from self._ended(key.cluster)
            return
        references: tuple[Reference, ...] = ()
        if entry.value is not None and MENTION in entry.value:
            references, self._free = references_of(entry.obj), ""
        ends = self._ends(entry)
        if references or ends:
            yield key
        if self._by_uid:
            yield from self._awaited(entry, references)
        yield from self._left(entry)
        if key.resource in (CRDS, BINDINGS):
            with self._lock:
                again = self._undecided.pop(key.cluster, set())
            yield from again

    def _ends(self, entry: Entry) -> bool:
        """Whether it is to go, or to let go, in a way that concerns its dependents; noted if it waits for them."""
        value = entry.value
        if value is not None and _DYING in value and any(mark in value for mark in _WAITING):
            metadata = entry.obj["metadata"]
            waits = {FOREGROUND_FINALIZER, ORPHAN_FINALIZER}.intersection(metadata.get("finalizers") or ())
            if metadata.get("deletionTimestamp") and waits:
                self._wait(entry.key, metadata)
                return True
        self._waits_no_more(entry.key)
        return False

    def _wait(self, key: Key, metadata: Object) -> None:
        self._waits_no_more(key)
        if metadata.get("deletionTimestamp") and FOREGROUND_FINALIZER in (metadata.get("finalizers") or ()):
            self._foreground.setdefault(key.cluster, {})[key] = metadata.get("uid", "")
            self._by_uid[key.cluster, metadata.get("uid", "")] = key

    def _awaited(self, entry: Entry, references: Iterable[Reference]) -> Iterable[Key]:
        """The owners that wait, of those that it has or had."""
        before = references_of(entry.before) if entry.previous is not None and MENTION in entry.previous else ()
        for reference in (*before, *references):
            owner = self._by_uid.get((entry.key.cluster, reference.uid))
            if owner is not None:
                yield owner

    def _left(self, entry: Entry) -> Iterable[Key]:
        """Whoever belonged to what is gone, or is another now, is looked at."""
        cluster = entry.key.cluster
        if entry.previous is None or cluster == self._free:
            return
        if not has_dependents(self._store, cluster):
            self._free = cluster
            return
        uid = _uid(entry.before)
        if entry.value is not None and _uid(entry.obj) == uid:
            return
        found = dependents(self._store, cluster, uid)
        if found:
            self._standing.departed(cluster, uid)
        yield from found

    def _ended(self, cluster: str) -> Iterable[Key]:
        """What is noted of a workspace goes with it; what was held there is let go of."""
        for key in [*self._foreground.get(cluster, ())]:
            self._waits_no_more(key)
        with self._lock:
            return self._undecided.pop(cluster, set())

    def _waits_no_more(self, key: Key) -> None:
        waiting = self._foreground.get(key.cluster, {})
        uid = waiting.pop(key, None)
        if uid is not None:
            self._by_uid.pop((key.cluster, uid), None)
            if not waiting:
                del self._foreground[key.cluster]

    def _is_waiting(self, key: Key) -> bool:
        return key in self._foreground.get(key.cluster, ())

    # -- what is done

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record = self._store.get(key)
        if record is None:
            return None
        obj = codec.decode(record.value, record.revision)
        metadata = obj["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if metadata.get("deletionTimestamp"):
            if ORPHAN_FINALIZER in finalizers:
                self._orphan(key, obj)
            elif FOREGROUND_FINALIZER in finalizers:
                self._await_dependents(key, obj)
            return None
        references = references_of(obj)
        if not references or declared_by(self._store, obj):
            return None
        # Noted before its kinds are looked up, so that no change of them comes between the two unseen.
        self._waits(key, True)
        try:
            judged = self._judge(record, obj, self._standing.classify(key, obj, references))
        except UndecidedOwner:
            self.queue.hold(key)
            return None
        except Invalid:
            judged = None
        self._waits(key, False)
        return judged

    def _waits(self, key: Key, waits: bool) -> None:
        with self._lock:
            found = self._undecided.setdefault(key.cluster, set())
            (found.add if waits else found.discard)(key)
            if not found:
                del self._undecided[key.cluster]

    def _judge(self, record: Record, obj: Object, owners: Classes) -> Future[list[int]] | None:
        if owners.solid:
            lost = owners.dangling | owners.waiting
            return write(self._store, replaced(record, _disowned(obj, lost))) if lost else None
        mine = dependents(self._store, record.key.cluster, obj["metadata"].get("uid", "")) if owners.waiting else ()
        if mine:
            if any(map(self._is_waiting, mine)):
                # A circle: one of those that the object would wait for waits for it.
                obj = _unblocked(obj)
                self._store.write(replaced(record, obj)).result()
                again = self._store.get(record.key)
                if again is None:
                    return None
                record = again
            return self._delete(record, FOREGROUND)
        finalizers = obj["metadata"].get("finalizers") or ()
        policy = FOREGROUND if FOREGROUND_FINALIZER in finalizers else BACKGROUND
        return self._delete(record, ORPHAN if ORPHAN_FINALIZER in finalizers else policy)

    def _delete(self, record: Record, policy: str) -> Future[list[int]] | None:
        kind = self._kinds(record.key.cluster).of_storage(record.key.resource)
        if kind is None:
            raise UndecidedOwner
        op = deletion.operation(kind, record, DeleteOptions(policy=policy))
        return write(self._store, op) if op is not None else None

    def _orphan(self, key: Key, obj: Object) -> None:
        uid = obj["metadata"].get("uid", "")
        mine = dependents(self._store, key.cluster, uid)
        for record, found in self._referring(mine, uid):
            write(self._store, replaced(record, _disowned(found, {uid}))).result()
        if self._referring(mine, uid):
            self.queue.add_after(key, _COMMIT_SECONDS)  # what was asked for is not committed yet
            return
        release(self._store, key, ORPHAN_FINALIZER)

    def _referring(self, keys: Iterable[Key], uid: str) -> list[tuple[Record, Object]]:
        """Those of the dependents that name the owner still, less what only a commit may change."""
        found = []
        for record in map(self._store.get, keys):
            if record is not None:
                obj = codec.decode(record.value, record.revision)
                if not declared_by(self._store, obj) and any(r.uid == uid for r in references_of(obj)):
                    found.append((record, obj))
        return found

    def _await_dependents(self, key: Key, obj: Object) -> None:
        """Dependents are deleted in their own turn; the owner goes when none of those that block is left."""
        uid = obj["metadata"].get("uid", "")
        blocked = False
        for dependent in dependents(self._store, key.cluster, uid):
            if key.namespace and dependent.namespace != key.namespace:
                continue
            if not self._is_waiting(dependent):
                self.queue.add(dependent)
            record = self._store.get(dependent)
            found = orjson.loads(record.value) if record is not None else None
            if found is not None and any(r.uid == uid and r.blocks for r in references_of(found)):
                blocked |= not declared_by(self._store, found)
        if not blocked:
            release(self._store, key, FOREGROUND_FINALIZER)


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))


def _disowned(obj: Object, uids: set[str]) -> Object:
    """Without its references to these owners."""
    kept = [r for r in obj["metadata"].get("ownerReferences") or () if r.get("uid") not in uids]
    metadata = {k: v for k, v in obj["metadata"].items() if k != "ownerReferences"}
    return {**obj, "metadata": {**metadata, "ownerReferences": kept} if kept else metadata}


def _unblocked(obj: Object) -> Object:
    """Its references no longer hold up the deletion of its owners."""
    references = [
        {**r, "blockOwnerDeletion": False} if r.get("blockOwnerDeletion") else r
        for r in obj["metadata"].get("ownerReferences") or ()
    ]
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": references}}
