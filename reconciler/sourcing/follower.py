"""Follows sources: visits each when it is due, in threads, and tells what is new.

Made by whoever holds the fleet, one for a data directory. When is timetabled.py's, what a visit does visit.py's. Three
kinds of threads: one that begins visits, one for each visit (a bounded number), one that tells news, so that neither
waits for another.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field

from reconciler.repository.errors import RepositoryError
from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.disk import SourceDisk
from reconciler.sourcing.faults import AGAIN, SourceFault, VisitGivenUp
from reconciler.sourcing.followed import FollowedSource, Found
from reconciler.sourcing.kept import SourceRefs
from reconciler.sourcing.settings import DEFAULT, FollowSettings
from reconciler.sourcing.timetabled import Timetabled
from reconciler.sourcing.visit import Visit, Visited, within

log = logging.getLogger(__name__)

_NOTHING = Found()


@dataclass(slots=True)
class _State:
    """`left`: heads that the branch left, and when. `began`: when the last visit did. `second`, `refused`: see
    Visited."""

    source: FollowedSource
    found: Found = _NOTHING
    began: float = 0.0
    left: dict[str, float] = field(default_factory=dict)
    second: bool = False
    refused: frozenset[str] = frozenset()


class SourceFollower(Timetabled[Visit]):
    """See followed.SourceFollowing. `store`: where the repositories are, of which no other process writes any. `news`:
    called with names, one call at a time. Begin with `start`."""

    def __init__(
        self, store: SourceStore, news: Callable[[set[str]], None], settings: FollowSettings = DEFAULT
    ) -> None:
        super().__init__(store, settings, "sources", "source-visit")
        self._news = news
        self._disk = SourceDisk(store, settings.together)
        self._states: dict[str, _State] = {}
        self._kept: frozenset[str] = frozenset()
        self._new = set[str]()
        self._threads.append(threading.Thread(target=self._tell, name="source-news", daemon=True))

    def follow(self, wanted: Mapping[str, FollowedSource], kept: Collection[str] = frozenset()) -> None:
        with self._changed:
            new = wanted.keys() - self._states.keys()
            states = {name: self._states.get(name) or _State(source) for name, source in wanted.items()}
            anew = {name for name in wanted if states[name].source != wanted[name]}
            if not new and not anew and states.keys() == self._states.keys() and self._kept == kept and self._told:
                return
            for name in new:
                self._recall(name, states[name])
            asked = set[str]()
            for name in anew:
                state, source = states[name], wanted[name]
                if state.source.address != source.address:
                    state.found = _NOTHING
                    self._recall(name, state, source)
                if (state.source.address, state.source.credentials, state.source.trusted) != (
                    source.address, source.credentials, source.trusted,
                ):  # fmt: skip
                    asked.add(name)
                state.source = source
            self._states, self._kept, self._told = states, frozenset(kept), True
            now = time.monotonic()
            # One that was fetched before is no stranger.
            self._timetable.follow(states, now, {name for name in new if states[name].found.commit})
            self._timetable.ask(asked, now)
            self._changed.notify_all()

    def found(self, name: str) -> Found:
        with self._changed:
            state = self._states.get(name)
            return state.found if state is not None else _NOTHING

    def look_now(self, names: Iterable[str]) -> None:
        with self._changed:
            self._timetable.ask(names, time.monotonic())
            self._changed.notify_all()

    def _wanted(self) -> Set[str]:
        return self._states.keys() | self._kept

    def _work(self, name: str) -> Visit:
        state, now = self._states[name], time.monotonic()
        state.began = time.time()
        for commit in [commit for commit, when in state.left.items() if now - when > self._settings.kept]:
            del state.left[commit]
        keep = state.source.keep | state.left.keys()
        return Visit(name, state.source, keep, state.refused, state.second, within(self._settings.bounds.visit))

    def _make(self, work: Visit) -> None:
        result: Visited | SourceFault | None = None
        try:
            result = work.make(self._disk, self._settings)
        except VisitGivenUp:
            log.debug("the visit to %s was given up", work.source.address.url)
        except SourceFault as fault:
            result = fault
        except (RepositoryError, OSError) as error:
            log.warning("what came of %s cannot be kept: %s", work.source.address.url, error)
            result = SourceFault("Broken", "this server cannot keep what comes of the repository", "see its log")
        except Exception:
            log.exception("the visit to %s failed", work.source.address.url)
            result = SourceFault("Broken", "a fault of this server's", "see its log")
        finally:
            self._ended(work, result)

    def _ended(self, visit: Visit, result: Visited | SourceFault | None) -> None:
        with self._changed:
            now = time.monotonic()
            self._over(visit, now, isinstance(result, Visited))
            state = self._states.get(visit.name)
            # Of one that is followed elsewhere by now it says nothing.
            if state is not None and result is not None and state.source.address == visit.source.address:
                self._note(visit.name, state, result, now)

    def _note(self, name: str, state: _State, result: Visited | SourceFault, now: float) -> None:
        before, when = state.found, time.time()
        if isinstance(result, Visited):
            state.second, state.refused = result.second, state.refused | result.refused
            state.left |= dict.fromkeys(result.left, now)
            state.found = Found(result.head, looked=when, began=state.began)
        else:
            state.second = False
            since = before.since or when
            state.found = Found(before.commit, result.reason, result.what, result.hint, since, when, state.began)
        if state.found[:4] != before[:4] or not before.looked:
            self._new.add(name)
            if isinstance(result, SourceFault):
                log.warning("%s: %s", state.source.address.url, result)

    def _tell(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._new or self._closed)
                if self._closed:
                    return
                new, self._new = self._new, set()
            try:
                self._news(new)
            except Exception:
                log.exception("what is new of sources was not taken")

    def _recall(self, name: str, state: _State, source: FollowedSource | None = None) -> None:
        """What a former self knew of the source."""
        try:
            repository = self._store.open(name)
            if repository is None:
                return
            refs = SourceRefs(repository)
            state.found = Found(refs.head((source or state.source).address.branch))
            state.left |= dict.fromkeys(refs.kept(), time.monotonic())
        except RepositoryError as error:
            log.warning("%s", error)
            state.found = Found(reason="Broken", fault=error.what, hint=error.hint or AGAIN, since=time.time())
