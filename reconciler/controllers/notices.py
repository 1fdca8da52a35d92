"""Events: what happened to workspaces, Placements, sync targets and copies, for whoever describes them.

A controller of the main store. What turned it finds in the log, where an entry has what stood there before: so a first
load and a recovery, which fill the store without a log, say nothing, and a start goes on where the last one was. An
Event of an entry is called by its revision, so looking at the entry again says nothing twice. What the log does not
tell (a copy that was refused, drift) is handed in by `say`.

An Event stands beside the object that it is about: in its namespace, or in `default` of its workspace. How many there
are of one object is plan/correlation's to say; of many objects that one commit turns the first are told one by one and
the rest as a number, and all are written a few hundred at a time, so many a second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from apiserver.model import clock, marks, paths
from apiserver.model.brief import brief
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry import codec, objects, tree
from apiserver.storage.protocol import NEVER, Check, Conflict, Op, Put, Store
from reconciler.controllers.controller import EVERYTHING, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.toldcopies import ELSE, EVENTS, LAST, ToldCopies
from reconciler.plan.correlation import Correlation, Saying
from reconciler.plan.notices import (
    ASKED,
    MESSAGE,
    OBJECTS_DELETED,
    PLACEMENTS,
    WORKSPACES_DELETED,
    About,
    Notice,
    is_settled,
    notices,
)

log = logging.getLogger(__name__)

COMPONENT = "treeplane"
_SORT, _DELETED, _GONE = "~sort", "~deleted", "~gone"
"""As the resource of a key: notices of one reason about one kind in a workspace; what went in one; workspaces of it."""
_REST = Key("~rest", "", "", "")
"""What is left of them, since too much happens."""
_EACH, _NAMED = 50, 5
"""Of notices alike in one workspace: so many are told one by one; so many names of the others."""
_MANY = 10
"""Objects that have to go at once to be told of."""
_BATCH = 250
_WAITING = 20_000
"""Notices in memory; of more is counted how many there were."""
_NOT_GOOD = (b'"status":"False"', b'"status":"Unknown"')
_DECLARED = f'"{marks.SOURCE_PATH}"'.encode()


class EventSettings(NamedTuple):
    """Events that are written at once, and a second, of all there is. `gather`: seconds without another deletion after
    which they are told of."""

    burst: int = 1000
    rate: float = 200.0
    gather: float = 0.5


_USUAL = EventSettings()


class _Went:
    """Deletions that are gathered. `first`: the revision of the first of them; `last`: when the last was told of."""

    __slots__ = ("count", "first", "last", "names")

    def __init__(self, first: int) -> None:
        self.first, self.count, self.last, self.names = first, 0, 0.0, list[str]()


class Notices(Controller[Key]):
    """`told`: hears of each that was written, with the workspace's path."""

    name, version = "notices", "1"
    resources = EVERYTHING | {Internal.WORKSPACE}
    shown = frozenset({PLACEMENTS})

    def __init__(
        self,
        store: Store,
        told: Callable[[str, Notice], None] = lambda *_: None,
        settings: EventSettings = _USUAL,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._told, self._settings, self._now = store, told, settings, now
        self._correlation, self._copies = Correlation(), ToldCopies(store)
        self._lock = threading.Lock()
        self._waiting: dict[Key, list[Notice]] = {}
        self._count = self._dropped = 0
        self._went: dict[Key, _Went] = {}
        self._fresh: set[Key] = set()
        """Placements that a first load brought, which are decided for the first time."""
        self._left, self._since = float(settings.burst), now()

    # -- what happens

    def say(self, notice: Notice) -> None:
        """Of what no entry tells; of a copy that is refused nothing that was said of it last. From every thread."""
        if self._copies.is_told(notice):
            return
        self.queue.add(self._note(notice._replace(revision=time.time_ns() // 1000)))

    def begin(self) -> None:
        with self._lock:
            self._fresh.clear()

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.shown:
            if not is_settled(entry.obj):
                self._fresh.add(entry.key)
            return ()
        if entry.value is None:
            return self._deleted(entry)
        if entry.key.resource not in ASKED or not _may_tell(entry):
            return ()
        found = notices(entry.key, entry.before, entry.obj, entry.revision)
        if entry.key in self._fresh:
            found = iter(())
            if is_settled(entry.obj):
                self._fresh.discard(entry.key)
        return [self._note(notice) for notice in found]

    def _note(self, notice: Notice) -> Key:
        key = Key(_SORT, notice.cluster, notice.reason, notice.about.kind)
        with self._lock:
            if self._count < _WAITING:
                self._count += 1
                self._waiting.setdefault(key, []).append(notice)
            else:
                self._dropped += 1
        return key

    def _deleted(self, entry: Entry) -> Iterable[Key]:
        previous = entry.previous or b""
        if entry.key.resource == Internal.WORKSPACE:
            path = tree.path_of(previous)
            above = paths.parent(path)
            if tree.is_stored(previous) or above is None:
                return ()
            return (self._add(Key(_GONE, above, "", ""), entry.revision, paths.base(path)),)
        if entry.with_workspace or _DECLARED not in previous:
            return ()
        return (self._add(Key(_DELETED, entry.key.cluster, "", ""), entry.revision, ""),)

    def _add(self, key: Key, revision: int, name: str) -> Key:
        with self._lock:
            went = self._went.setdefault(key, _Went(revision))
            went.count, went.last = went.count + 1, self._now()
            if name and len(went.names) < _NAMED:
                went.names.append(name)
        return key

    # -- what is written

    def reconcile(self, key: Key) -> None:
        """All that waits, for whichever key: what one commit turned in thousands of workspaces goes together."""
        if key.resource in (_DELETED, _GONE):
            self._tell_of_deletions(key)
            return
        with self._lock:
            waiting, self._waiting, self._count = self._waiting, {}, 0
            dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning("%d things happened at once of which no Event tells", dropped)
        found = waiting.pop(_REST, [])
        for some in waiting.values():
            found += self._bounded(some)
        try:
            found = self._write(found)
            if found:
                self.queue.add_after(_REST, 1.0)
        finally:
            if found:
                with self._lock:
                    self._count += len(found)
                    self._waiting[_REST] = [*found, *self._waiting.get(_REST, ())]

    def _bounded(self, found: list[Notice]) -> list[Notice]:
        """The rest of many alike as one, on the workspace itself."""
        if len(found) <= _EACH:
            return found
        few, rest = found[:_EACH], found[_EACH:]
        where = self._workspace(rest[0].cluster)
        if where is None or where == rest[0].about:
            return few
        names = ", ".join(each.about.name for each in rest[:_NAMED])
        more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
        kind = rest[0].about.kind
        text = brief(f"{len(rest)} more of kind {kind}: {names}{more}", MESSAGE)
        return [*few, rest[0]._replace(about=where, message=text)]

    def _tell_of_deletions(self, key: Key) -> None:
        with self._lock:
            went = self._went.get(key)
            wait = went.last + self._settings.gather - self._now() if went is not None else 0.0
            if wait <= 0:
                self._went.pop(key, None)
        if went is None:
            return
        if wait > 0:
            self.queue.add_after(key, wait + 0.01)
            return
        record = tree.workspace_named(self._store, key.cluster)
        where = self._workspace(record.cluster) if record is not None else None
        if record is None or where is None:
            return
        if key.resource == _GONE:
            more = f" and {went.count - len(went.names)} more" if went.count > len(went.names) else ""
            told = WORKSPACES_DELETED, f"{_of(went.count, 'workspace')} went: {', '.join(went.names)}{more}"
        elif went.count < _MANY:
            return
        else:
            told = OBJECTS_DELETED, f"{went.count} objects that files declared went with commit {record.commit:.10}"
        self._write([Notice(record.cluster, where, *told, revision=went.first)])

    def _workspace(self, cluster: str) -> About | None:
        """Its LogicalCluster."""
        found = self._store.get(Key(LOGICAL_CLUSTERS, cluster, "", "cluster"))
        uid = codec.uid_of(found.value) if found is not None else ""
        return About("core.kcp.io/v1alpha1", "LogicalCluster", "cluster", "", uid) if uid else None

    def _write(self, found: list[Notice]) -> list[Notice]:
        """As many as may be by now; what is left of them."""
        while found:
            some = found[: min(_BATCH, self._may())]
            if not some:
                return found
            found = found[len(some) :]
            now = self._now()
            said = [saying for each in some if (saying := self._correlation.say(each, now)) is not None]
            self._left -= len(some)
            for saying in self._said(said):
                self._told(tree.path_named(self._store, saying.notice.cluster), saying.notice)
        return found

    def _may(self) -> int:
        now = self._now()
        self._left = min(self._settings.burst, self._left + (now - self._since) * self._settings.rate)
        self._since = now
        return int(self._left)

    def _said(self, said: Sequence[Saying]) -> Iterable[Saying]:
        """Writes them together; one by one where one of them cannot be written. Those that were."""
        try:
            ops = [self._ops(each) for each in said]
            self._store.write(*_once(op for some in ops for op in some)).result()
            return [each for each, some in zip(said, ops, strict=True) if some]
        except Conflict:
            return [each for each in said if self._alone(each)]

    def _alone(self, saying: Saying) -> bool:
        try:
            ops = self._ops(saying)
            self._store.write(*ops).result()
        except Conflict:  # the workspace goes, or it was said before
            return False
        return bool(ops)

    def _ops(self, saying: Saying) -> list[Op]:
        notice, key = saying.notice, _key(saying)
        there = self._store.get(tree.cluster_key(key.cluster))
        if there is None:
            return []
        before = self._store.get(key)
        if before is None:
            event = objects.complete(key, _event(saying), runtime=True)
            put = Put(key, codec.encode(event), NEVER)
        else:
            event = codec.decode(before.value, before.revision)
            said = event["metadata"].setdefault("annotations", {})
            if int(said.get(LAST, 0)) >= notice.revision:
                return []  # it was looked at again after a restart
            put = Put(key, codec.encode(_again(event, saying)), before.revision)
        return [Check(there.key, there.revision), put]


def _may_tell(entry: Entry) -> bool:
    """Whether to have it decoded: most of what is written of workspaces is good before and after."""
    if entry.key.resource == PLACEMENTS:
        return True
    return any(said in text for said in _NOT_GOOD for text in (entry.value or b"", entry.previous or b""))


def _key(saying: Saying) -> Key:
    notice = saying.notice
    name = f"{notice.about.name[:200]}.{saying.first:x}{crc32(notice.reason.encode()) & 0xFF:02x}"
    return Key(EVENTS, notice.cluster, notice.about.namespace or ELSE, name)


def _event(saying: Saying) -> dict[str, Any]:
    notice, about, now = saying.notice, saying.notice.about, clock.now()
    involved = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid}
    if about.namespace:
        involved["namespace"] = about.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"annotations": {LAST: str(notice.revision)}},
        "involvedObject": involved,
        "reason": notice.reason,
        "message": notice.message,
        "type": "Warning" if notice.warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
        "eventTime": None,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": saying.times,
    }


def _again(event: dict[str, Any], saying: Saying) -> dict[str, Any]:
    now, metadata = clock.now(), event["metadata"]
    written = {"manager": COMPONENT, "operation": "Update", "apiVersion": "v1", "time": now}
    annotations = {**metadata["annotations"], LAST: str(saying.notice.revision)}
    # It is kept as long as others from here on (controllers/expiry).
    metadata = {**metadata, "annotations": annotations, "managedFields": [{**written, "fieldsType": "FieldsV1"}]}
    return {
        **event,
        "metadata": metadata,
        "message": saying.notice.message,
        "count": saying.times,
        "lastTimestamp": now,
    }


def _once(ops: Iterable[Op]) -> list[Op]:
    """Without a check that was made already; the last of several writes of one Event."""
    found: dict[tuple[bool, Key], Op] = {}
    for op in ops:
        assert isinstance(op, Check | Put)
        found[(isinstance(op, Check), op.key)] = op
    return list(found.values())


def _of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
