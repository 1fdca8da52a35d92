"""The end of namespaces: one that is deleted takes its content along, and says what it waits for.

One controller for all workspaces of a store. A namespace deleted through the API is Terminating until nothing
is left in it; it is looked at again whenever something in it changes. One that is gone at once, because a commit no
longer declares it, leaves what was never in git (Events, Leases, what was created through the API): that goes too.

What git declares is not deleted here (see disposal): the namespace waits, and NamespaceDeletionContentFailure names the
files.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.model.tables import Table, row_key
from apiserver.registry import codec, indexes
from apiserver.registry.kindtable import KindTable
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import DeleteRow, PutRow, Record, Store
from reconciler.controllers import disposal
from reconciler.controllers.controller import EVERYTHING, Controller
from reconciler.controllers.entry import Entry

Object = dict[str, Any]

NAMESPACES = "namespaces"
FINALIZER = "kubernetes"

_PAGE = 500
_SLICE = 2000
"""Objects deleted before others' work is looked at."""
_DYING = b'"deletionTimestamp"'

_OK = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""The conditions of a terminating namespace, and what they say when there is nothing to say."""


@dataclass(slots=True)
class _Content:
    """What is in a namespace. `declared`: what git declares of it, each with its file. `more`: it was not all looked
    at."""

    remaining: dict[str, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)
    declared: list[str] = field(default_factory=list)
    more: bool = False


class NamespaceLife(Controller[Key]):
    """`kinds` of a logical cluster, as they are served now. `leftover`: whether an object with that value goes with a
    namespace that is gone already. `lingers`: see HousekeepingSettings."""

    name = "namespacelife"
    version = "1"
    resources = EVERYTHING
    beyond = frozenset({NAMESPACES})

    def __init__(
        self,
        store: Store,
        kinds: Callable[[str], KindTable],
        leftover: Callable[[bytes], bool] = disposal.leftover,
        lingers: float = 0.0,
    ) -> None:
        self._store = store
        self._leftover = leftover
        self._lingers = lingers
        self._kinds = kinds
        self._ending: set[tuple[str, str]] = set()
        """(cluster, name) of namespaces that are Terminating or gone with something left."""
        self._gone: dict[Key, int] = {}
        """Namespaces that went, with the revision at which they did: what was written before goes too. Those that wait
        for finalizers stand in a table."""
        self._seen: tuple[str, str] = ("", "")
        self._lock = threading.Lock()

    def begin(self) -> None:
        ending = self._store.indexed(indexes.ENDING, NAMESPACES, whole=True)
        gone = [(row.key.split("\0"), int(row.value)) for row in self._store.scan_rows(Table.GONE_NAMESPACES)]
        with self._lock:
            self._gone = {Key(NAMESPACES, cluster, "", name): revision for (cluster, name), revision in gone}
            self._ending = {(key.cluster, key.name) for key in (*(found.key for found in ending), *self._gone)}
        self._seen = ("", "")

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == NAMESPACES:
            if entry.with_workspace and (key.cluster, key.name) not in self._ending:
                return  # nothing is left in it
            if entry.value is None:
                self._went(key, entry.revision)
                yield key
            elif _DYING in entry.value:
                yield key
        elif entry.shown:
            yield from self._without_namespace(key)
        elif (key.cluster, key.namespace) in self._ending:
            yield Key(NAMESPACES, key.cluster, "", key.namespace)

    def _without_namespace(self, key: Key) -> Iterable[Key]:
        """The namespace that an object lacks; asked once for all that stand together."""
        if key.namespace and (key.cluster, key.namespace) != self._seen:
            self._seen = (key.cluster, key.namespace)
            home = Key(NAMESPACES, key.cluster, "", key.namespace)
            if self._store.get(home) is None:
                self._went(home, self._store.revision())
                yield home

    def _went(self, key: Key, revision: int) -> None:
        with self._lock:
            self._gone[key] = revision

    def reconcile(self, key: Key) -> None:
        # Before anything is read, so that no change comes between the two unseen.
        self._ending.add((key.cluster, key.name))
        gone = self._gone.get(key)
        if gone is not None:
            self._sweep(key, gone)
        record = self._store.get(key)
        obj = codec.decode(record.value, record.revision) if record is not None else None
        if record is not None and obj is not None and obj["metadata"].get("deletionTimestamp"):
            self._end(record, obj)
        elif key not in self._gone:
            self._ending.discard((key.cluster, key.name))

    # -- a namespace that is there no more

    def _sweep(self, key: Key, revision: int) -> None:
        """What was written before the namespace went. Finalizers are waited for."""
        left = deleted = 0
        for kind in self._kinds_there(key.cluster):
            for page in self._pages(kind, key):
                old = [r for r in page if r.revision <= revision and self._leftover(r.value)]
                deleted += disposal.delete_all(self._store, kind, old)
                left += len(old)
        row = row_key(key.cluster, key.name)
        if deleted:
            self.queue.add(key)
        elif left:
            self._store.write(PutRow(Table.GONE_NAMESPACES, row, b"%d" % revision)).result()
        else:
            if self._store.get_row(Table.GONE_NAMESPACES, row) is not None:
                self._store.write(DeleteRow(Table.GONE_NAMESPACES, row)).result()
            with self._lock:
                if self._gone.get(key) == revision:
                    del self._gone[key]

    # -- a namespace that is Terminating

    def _end(self, record: Record, namespace: Object) -> None:
        if (namespace.get("status") or {}).get("phase") != "Terminating":
            namespace = {**namespace, "status": {**(namespace.get("status") or {}), "phase": "Terminating"}}
            disposal.write(self._store, disposal.replaced(record, namespace)).result()
            return  # its change brings us back
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        if FINALIZER not in finalizers:
            op = disposal.replaced(record, namespace)
            if not finalizers and not namespace["metadata"].get("finalizers"):
                disposal.write(self._store, op).result()
            return
        content = self._delete_content(record.key)
        if content.more:
            self.queue.add(record.key)
            return
        told = _told(namespace, content)
        wait = self._lingers and self._lingers - _seconds_since(namespace["metadata"]["deletionTimestamp"])
        if wait > 0:
            self.queue.add_after(record.key, wait)
        elif not content.remaining:
            told = {**told, "spec": {**told["spec"], "finalizers": [f for f in finalizers if f != FINALIZER]}}
        if told != namespace:
            disposal.write(self._store, disposal.replaced(record, told)).result()

    def _delete_content(self, key: Key) -> _Content:
        """Pods first: while any is left, nothing else goes, since others may be what they need to end."""
        found = _Content()
        kinds = sorted(self._kept_kinds(key.cluster), key=lambda k: k.storage != "pods")
        deleted = 0
        for kind in kinds:
            for page in self._pages(kind, key):
                deleted += disposal.delete_all(self._store, kind, page)
                if deleted >= _SLICE:
                    found.more = True
                    return found
            self._count(kind, key, found)
            if kind.storage == "pods" and found.remaining:
                return found
        return found

    def _count(self, kind: ServedKind, key: Key, found: _Content) -> None:
        names = sorted({f"{k.resource}.{k.group}" for k in self._kinds(key.cluster).all() if k.storage == kind.storage})
        for page in self._pages(kind, key):
            for name in names:
                found.remaining[name] = found.remaining.get(name, 0) + len(page)
            for record in page:
                metadata = codec.decode(record.value, record.revision)["metadata"]
                for finalizer in metadata.get("finalizers") or ():
                    found.finalizers[finalizer] = found.finalizers.get(finalizer, 0) + len(names)
                path = disposal.declared(self._store, record.value)
                if path:
                    found.declared.append(f'{kind.qualified} "{record.key.name}" is declared in {path}')

    def _kept_kinds(self, cluster: str) -> list[ServedKind]:
        """One for each kind of object that namespaces hold and that may be deleted."""
        kinds = self._kinds(cluster).all()
        return list({k.storage: k for k in kinds if k.namespaced and k.storage and "delete" in k.verbs}.values())

    def _kinds_there(self, cluster: str) -> list[ServedKind]:
        """Those of them that the workspace has objects of; none where it went as a whole."""
        there = {*self._store.resources(cluster)}
        return [kind for kind in self._kept_kinds(cluster) if kind.storage in there] if there else []

    def _pages(self, kind: ServedKind, key: Key) -> Iterator[list[Record]]:
        after: Key | None = None
        while True:
            page = self._store.scan(kind.storage, key.cluster, key.name, after=after, limit=_PAGE)
            if page.records:
                yield page.records
            if page.more is None:
                return
            after = page.more


def _told(namespace: Object, content: _Content) -> Object:
    """The namespace with the conditions that say what it waits for."""
    said = dict.fromkeys(_OK, ("", ""))
    if content.remaining:
        listed = ", ".join(sorted(f"{name} has {n} resource instances" for name, n in content.remaining.items()))
        said["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
    if content.finalizers:
        listed = ", ".join(sorted(f"{name} in {n} resource instances" for name, n in content.finalizers.items()))
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        said["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
    if content.declared:
        listed = ", ".join(sorted(content.declared))
        text = f"Failed to delete all resource types, {len(content.declared)} remaining: {listed}"
        said["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", f"{text}; remove it there")
    status = namespace.get("status") or {}
    found = list(status.get("conditions") or ())
    for kind, (reason, message) in said.items():
        _set(found, kind, bool(reason), *((reason, message) if reason else _OK[kind]))
    return {**namespace, "status": {**status, "conditions": found}}


def _set(found: list[Object], kind: str, holds: bool, reason: str, message: str) -> None:
    """In its place if it is there, else at the end; the time moves with the status alone."""
    status = "True" if holds else "False"
    new = {"type": kind, "status": status, "lastTransitionTime": clock.now(), "reason": reason, "message": message}
    for at, old in enumerate(found):
        if old.get("type") == kind:
            if old.get("status") == status:
                new["lastTransitionTime"] = old.get("lastTransitionTime", new["lastTransitionTime"])
            found[at] = new
            return
    found.append(new)


def _seconds_since(timestamp: str) -> float:
    return time.time() - clock.parse(timestamp).timestamp()
