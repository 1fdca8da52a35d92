"""The one reader of a store's log: each entry is read once, and handed to the controllers that asked for its resource.

One for each store that a process works on; managers (manager.py) put their controllers in. A controller with a version
goes on at its checkpoint (progress.py). Where there is none, or the log no longer reaches back to it, controllers are
shown the objects that they ask to see: a page at a time, each resource once for all of them, the smallest first.
Between two pages the log is read on, so what is shown is never older than what was told before.

It is read by a thread of its own when the store's bell rings, and by whoever must not decide on less than what was
written (`catch_up`). Keys are made here, work is done elsewhere: an entry costs what those do who asked for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from apiserver.model.keys import Internal, Key
from apiserver.storage.baton import BATON
from apiserver.storage.protocol import Change, Compacted, Store
from reconciler.controllers import checkpoints
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.failures import log_failure
from reconciler.controllers.progress import SHOWN, Progress

_PAGE = 1000
_MANY, _NAP = 200, 0.1
"""Entries in one go after which what is more urgent has so many seconds for itself: each wake is one more thread that
wants the interpreter."""
_YIELD = 0.001
"""Seconds between two pages that are shown, in which others may read the log."""

Take = Callable[[Iterable[Any], int], None]
"""Told the keys that a controller made of an entry, and the entry's revision (SHOWN: of what was shown)."""


class Follower:
    """A controller in a feed. `ready`: all that it has to see was shown. `progress`: what is left of what it was told,
    if it has a version."""

    def __init__(
        self, controller: Controller[Any], take: Take, busy: Callable[[], bool], progress: Progress | None
    ) -> None:
        self.controller, self.take, self.busy, self.progress = controller, take, busy, progress
        self.ready = threading.Event()
        self.since = self.saved = 0
        """The revision behind which it is told of entries; that of the checkpoint on disk."""
        self.left = 0
        """Resources that it is still to be shown."""

    def asks(self, resource: str, *, gone: bool = False) -> bool:
        """`gone`: of an object that went with its workspace."""
        if not _among(resource, self.controller.resources):
            return False
        beyond = self.controller.beyond
        return not gone or beyond is None or resource.startswith("~") or _among(resource, beyond)

    @property
    def checkpoint(self) -> str:
        """The name of its checkpoint."""
        return checkpoints.name_of(self.controller.name, self.controller.version or "")

    def sees(self, resource: str) -> bool:
        shown = self.controller.shown
        return _among(resource, self.controller.resources if shown is None else shown)


class _Pass:
    """One resource that is shown to some; `after`: the last key that they saw."""

    def __init__(self, resource: str, followers: list[Follower]) -> None:
        self.resource, self.followers = resource, followers
        self.after: Key | None = None


class Feed:
    """`add` controllers, `start`, `stop`; the store stays open. `catch_up` needs no `start`."""

    FALLBACK_SECONDS = 1.0
    """A doorbell may be missed; the log is looked at this often in any case."""
    SAVE_SECONDS = 2.0
    """What controllers did since their checkpoint they look at again after a kill -9: no more than this."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reached = 0
        """Every entry up to this revision was handed out."""
        self._followers: tuple[Follower, ...] = ()
        self._new: list[Follower] = []
        self._asking: dict[tuple[str, bool], tuple[Follower, ...]] = {}
        """By resource, and whether an object of it went with its workspace."""
        self._passes: list[_Pass] = []
        self._handed = 0
        """Entries, so far."""
        self._began = False
        self._reading = threading.Lock()
        self._bell = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._leave: Callable[[], None] = lambda: None

    def add(
        self,
        controller: Controller[Any],
        take: Take,
        busy: Callable[[], bool] = lambda: False,
        progress: Progress | None = None,
    ) -> Follower:
        """Hand `take` the keys that the controller makes of entries, from its checkpoint on; where it has none it sees
        in its turn what there is. `busy`: whether something more urgent is at work, so that this is done later."""
        follower = Follower(controller, take, busy, progress)
        with self._reading:
            self._new.append(follower)
        self._bell.set()
        return follower

    def start(self) -> None:
        self._leave = self.store.subscribe(self._bell.set)
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._bell.set()
        self._leave()
        if self._thread is not None:
            self._thread.join()
        try:
            self.save()
        except Exception as error:
            log_failure("feed", self.reached, error)

    def save(self) -> None:
        """Write down how far controllers are, where that is another place than on disk."""
        with self._reading:
            moved = [(f, low) for f in self._followers if (low := self._low(f)) > f.saved]
            known = {f.checkpoint for f in self._followers}
        if moved:
            ops = [checkpoints.put(f.checkpoint, low) for f, low in moved]
            self.store.write(*ops, *checkpoints.others(self.store, known)).result()
            for follower, low in moved:
                follower.saved = low

    def _low(self, follower: Follower) -> int:
        return follower.progress.low(self.reached) if follower.progress and follower.ready.is_set() else -1

    def catch_up(self, needed: Collection[Follower]) -> bool:
        """Read all that the log holds by now, and show these all that they have to see. False: the feed was stopped
        before that."""
        while not self._stopped.is_set():
            if self._reading.locked():
                BATON.give()
            with self._reading:
                self._read()
                found = next((p for p in self._passes if any(f in needed for f in p.followers)), None)
                if found is None:
                    return not self._stopped.is_set()
                self._show(found)
            self._stopped.wait(_YIELD)
        return False

    def _run(self) -> None:
        saved = time.monotonic()
        while not self._stopped.is_set():
            self._bell.clear()
            followers = (*self._followers, *self._new)
            busy = {asked: asked() for asked in {f.busy for f in followers}}  # most ask the same
            handed, idle = self._handed, [f for f in followers if not busy[f.busy]]
            try:
                self.catch_up(idle)
                if time.monotonic() - saved >= self.SAVE_SECONDS:
                    saved = time.monotonic()
                    self.save()
            except Exception as error:
                log_failure("feed", self.reached, error)
            if self._handed - handed > _MANY and len(idle) < len(self._followers):
                self._stopped.wait(_NAP)
            self._bell.wait(self.FALLBACK_SECONDS)

    # -- all that follows is done by one thread at a time

    def _read(self) -> None:
        if self._new:
            added, self._new = self._new, []
            self._followers = (*self._followers, *added)
            self._asking = {}
            self._begin(added)
            self._go_back(min(f.since for f in added))
        until = self.store.revision()
        while self.reached < until and not self._stopped.is_set():
            with BATON:
                self._read_page(until)

    def _read_page(self, until: int) -> None:
        try:
            changes = self.store.changes(self.reached, _PAGE, self._is_asked_for)
        except Compacted:
            self._passes, self._began = [], False
            self._begin(self._followers)
            self._go_back(min(f.since for f in self._followers))
            return
        if not changes:
            self.reached = until  # its last entries were forgotten, or never written
            return
        ends = _ends(changes)
        for change in changes:
            key = change.key
            gone = change.deletes and change.revision < ends.get(key.cluster, 0)
            followers = self._asking.get((key.resource, gone))
            if followers is None:
                followers = self._find(key.resource, gone)
            if followers:
                entry = Entry(change, with_workspace=gone)
                for follower in followers:
                    if change.revision > follower.since:
                        _tell(follower, entry)
        self.reached = changes[-1].revision
        self._handed += len(changes)

    def _go_back(self, to: int) -> None:
        """Read the log from there; those who were told more already are not told it again."""
        if not self._began:
            self._began, self.reached = True, to
        elif to < self.reached:
            for follower in self._followers:
                follower.since = max(follower.since, self.reached)
            self.reached = to

    def _is_asked_for(self, resource: str) -> bool:
        """Of an object that went with its workspace."""
        return bool(self._asking.get((resource, True)) or self._find(resource, True))

    def _find(self, resource: str, gone: bool) -> tuple[Follower, ...]:
        found = self._asking[resource, gone] = tuple(f for f in self._followers if f.asks(resource, gone=gone))
        return found

    def _begin(self, followers: Iterable[Follower]) -> None:
        wanted: dict[str, list[Follower]] = {}
        now, existing = self.store.revision(), self.store.resources()
        for follower in followers:
            follower.ready.clear()
            checkpoint = checkpoints.reached(self.store, follower.checkpoint) if follower.progress else None
            _call(follower, follower.controller.begin)
            if checkpoint is not None:
                follower.since = follower.saved = checkpoint
                follower.ready.set()
                continue
            follower.since, follower.saved = now, -1
            mine = [resource for resource in existing if follower.sees(resource)]
            follower.left = len(mine)
            for resource in mine:
                wanted.setdefault(resource, []).append(follower)
        counts = {resource: self.store.count(resource) for resource in wanted}
        self._passes += [_Pass(r, wanted[r]) for r in sorted(wanted, key=lambda r: (counts[r], r))]
        for follower in followers:
            if not follower.ready.is_set():
                self._ended(follower)

    def _show(self, found: _Pass) -> None:
        with BATON:
            page = self.store.scan(found.resource, after=found.after, limit=_PAGE, count=False)
            for record in page.records:
                entry = Entry(record)
                for follower in found.followers:
                    _tell(follower, entry)
        found.after = page.more
        if page.more is None:
            self._passes.remove(found)
            for follower in found.followers:
                follower.left -= 1
                self._ended(follower)

    @staticmethod
    def _ended(follower: Follower) -> None:
        if not follower.left:
            _call(follower, lambda: follower.take(follower.controller.complete(), SHOWN))
            follower.ready.set()


def _ends(changes: Iterable[Change]) -> dict[str, int]:
    """The logical clusters that end among some changes, with the revisions of what stands for them. Of one whose
    objects went in the page before nothing is known here: they are looked at as others are."""
    return {c.key.cluster: c.revision for c in changes if c.deletes and c.key.resource == Internal.WORKSPACE}


def _among(resource: str, names: frozenset[str]) -> bool:
    if resource in names:
        return True
    return f"{resource.partition(':')[0]}:*" in names or ("*" in names and not resource.startswith("~"))


def _tell(follower: Follower, entry: Entry) -> None:
    """An object that one controller cannot read must not keep it, or others, from the rest."""
    try:
        for key in follower.controller.keys_of(entry):
            follower.take((key,), SHOWN if entry.shown else entry.revision)
    except Exception as error:
        log_failure(follower.controller.name, entry.key, error)


def _call(follower: Follower, step: Callable[[], None]) -> None:
    try:
        step()
    except Exception as error:
        log_failure(follower.controller.name, "start", error)
