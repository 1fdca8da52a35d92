"""Events: what happened to workspaces, Placements, sync targets and copies, for whoever describes them.

A controller of the main store. What turned it finds in the log, where an entry has what stood there before: so a first
load and a recovery, which fill the store without a log, say nothing, and a start goes on where the last one was. An
Event of an entry is called by its revision, so looking at the entry again says nothing twice. What the log does not
tell (a copy that was refused, drift) is handed in by `say`.

Of many objects that one commit turns the first are told one by one and the rest as a number; what goes is gathered by
departed. How Events are written, so many a second, is eventwriting's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from apiserver.model.brief import brief
from apiserver.model.counts import some_of
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry import codec
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import EVERYTHING, NO_RESOURCES, Controller
from reconciler.controllers.departed import OF_DELETIONS, Departed
from reconciler.controllers.entry import Entry
from reconciler.controllers.eventwriting import USUAL, EventSettings, EventWriter
from reconciler.controllers.toldcopies import ToldCopies
from reconciler.plan.notices import ASKED, MESSAGE, PLACEMENTS, About, Notice, is_settled, notices

log = logging.getLogger(__name__)

_SORT = "~sort"
"""As the resource of a key: notices of one reason about one kind in a workspace."""
_REST = Key("~rest", "", "", "")
"""What is left of them, since too much happens."""
_EACH, _NAMED = 50, 5
"""Of notices alike in one workspace: so many are told one by one; so many names of the others."""
_WAITING = 20_000
"""Notices in memory; of more is counted how many there were."""
_NOT_GOOD = (b'"status":"False"', b'"status":"Unknown"')


class Notices(Controller[Key]):
    """`told`: hears of each that was written, with the workspace's path."""

    name, version = "notices", "1"
    resources = EVERYTHING | {Internal.WORKSPACE}
    shown = frozenset({PLACEMENTS})
    beyond = NO_RESOURCES

    def __init__(
        self,
        store: Store,
        told: Callable[[str, Notice], None] = lambda *_: None,
        settings: EventSettings = USUAL,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._copies, self._writer = ToldCopies(store), EventWriter(store, told, settings, now)
        self._departed = Departed(store, self._workspace, settings.gather, now)
        self._lock = threading.Lock()
        self._waiting: dict[Key, list[Notice]] = {}
        self._count = self._dropped = 0
        self._fresh: set[Key] = set()
        """Placements that a first load brought, which are decided for the first time."""

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
            return self._departed.keys_of(entry)
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

    # -- what is written

    def reconcile(self, key: Key) -> None:
        """All that waits, for whichever key: what one commit turned in thousands of workspaces goes together."""
        if key.resource in OF_DELETIONS:
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
            found = self._writer.write(found)
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
        names, kind = some_of([each.about.name for each in rest], _NAMED), rest[0].about.kind
        text = brief(f"{len(rest)} more of kind {kind}: {names}", MESSAGE)
        return [*few, rest[0]._replace(about=where, message=text)]

    def _tell_of_deletions(self, key: Key) -> None:
        said = self._departed.told(key)
        if isinstance(said, Notice):
            self._writer.write([said])
        elif said is not None:
            self.queue.add_after(key, said + 0.01)

    def _workspace(self, cluster: str) -> About | None:
        """Its LogicalCluster."""
        found = self._store.get(Key(LOGICAL_CLUSTERS, cluster, "", "cluster"))
        uid = codec.uid_of(found.value) if found is not None else ""
        return About("core.kcp.io/v1alpha1", "LogicalCluster", "cluster", "", uid) if uid else None


def _may_tell(entry: Entry) -> bool:
    """Whether to have it decoded: most of what is written of workspaces is good before and after."""
    if entry.key.resource == PLACEMENTS:
        return True
    return any(said in text for said in _NOT_GOOD for text in (entry.value or b"", entry.previous or b""))
