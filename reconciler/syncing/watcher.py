"""Lists and watches one kind on one sync target, and tells the cache. One thread a kind, started when it is needed.

A target may lie, or be unwell for days: whatever ends a round (a watch that ends at once, a revision that it forgot, a
list that fails) is waited for before the next, longer each time, until a round has lasted; and what it says is read no
faster than events happen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.model.kinds import GroupResource
from reconciler.controllers.failures import Expected, log_failure
from reconciler.syncing import client
from reconciler.syncing.client import TargetEvent, TargetPage
from reconciler.syncing.errors import TargetRefused
from reconciler.syncing.live import Allowance, Cache

Object = dict[str, Any]
Names = tuple[str, str]


class WatchSource(Protocol):
    """The part of a Client that is watched."""

    def list(self, where: str, selector: str = "") -> Iterable[TargetPage]: ...

    def watch(self, where: str, selector: str, revision: str) -> Iterable[TargetEvent]: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. `first`: between the end of a watch and the next one; doubled each time, up to `longest`, until one has
    lasted as long as `longest`. `events`: that are read in a second at most."""

    first: float = 0.2
    longest: float = 30.0
    events: int = 1_000


class Watcher(threading.Thread):
    """Of what has our label. `changed(namespace, name)`: told after each change. `deleted`: told before that what an
    object was when it went."""

    def __init__(
        self,
        source: WatchSource,
        kind: GroupResource,
        version: str,
        selector: str,
        changed: Callable[[str, str], None],
        *,
        deleted: Callable[[Object], None] = lambda _: None,
        allowance: Allowance | None = None,
        pace: Pace = Pace(),
    ) -> None:
        super().__init__(name=f"watch-{kind}", daemon=True)
        self.cache = Cache(allowance)
        self.listed = threading.Event()
        """The target has answered a full list, and all of it was told."""
        self.trouble: Expected | None = None
        """Why the last round ended badly; None once a list was answered."""
        self._source, self._selector, self._pace = source, selector, pace
        self._changed, self._deleted = changed, deleted
        self._where = client.path(kind, version)
        self._stopped = threading.Event()
        self._revision = ""

    def stop(self) -> None:
        """Ends after the request under way; closing the client ends that, too."""
        self._stopped.set()

    def run(self) -> None:
        pause = self._pace.first
        while not self._stopped.is_set():
            begun = time.monotonic()
            self._round(quiet=pause > self._pace.first)
            if time.monotonic() - begun >= self._pace.longest:
                pause = self._pace.first
            self._stopped.wait(pause)
            pause = min(pause * 2, self._pace.longest)

    def _round(self, *, quiet: bool) -> None:
        """One watch from where the last one ended, after a list if that is not known."""
        try:
            if not self._revision:
                self._revision = self._list()
                self.trouble = None
            self._follow()
        except Exception as error:
            if isinstance(error, TargetRefused):
                self._revision = ""  # it may be too old, with a status instead of an event
            if isinstance(error, Expected):
                self.trouble = error
            if not self._stopped.is_set() and not quiet:
                log_failure(self.name, self._where, error)

    def _list(self) -> str:
        keys: set[Names] = set()
        seen: list[Names] = []
        revision = ""
        for page in self._source.list(self._where, self._selector):
            revision = page.revision
            for item in page.items:
                keys.add(_names(item))
                if self.cache.saw(item, page.size // len(page.items)):
                    seen.append(_names(item))
        gone = self.cache.keep(keys)
        for key in (*gone, *seen):
            self._changed(*key)
        self.listed.set()
        return revision

    def _follow(self) -> None:
        began, count = time.monotonic(), 0
        for kind, obj, size in self._source.watch(self._where, self._selector, self._revision):
            if kind == "ERROR":
                self._revision = ""
                return
            self._revision = obj["metadata"]["resourceVersion"]
            if kind == "BOOKMARK":
                continue
            self._event(kind, obj, size)
            count += 1
            if count >= self._pace.events:
                self._stopped.wait(max(0.0, began + 1 - time.monotonic()))
                began, count = time.monotonic(), 0
            if self._stopped.is_set():
                return

    def _event(self, kind: str, obj: Object, size: int) -> None:
        metadata = obj["metadata"]
        if kind == "DELETED":
            self._deleted(obj)
            news = self.cache.drop(*_names(obj), metadata["uid"], metadata["resourceVersion"])
        else:
            news = self.cache.saw(obj, size)
        if news:
            self._changed(*_names(obj))


def _names(obj: Object) -> Names:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
