"""Tells somebody outside what became of commits, each thing once: the loop behind commit statuses and the webhook.

A controller of the main store for each who is told, in a manager of its own, so that one who is away or slow keeps
nobody waiting. It follows outcomes (loading/outcomes). What was said of a commit is a row beside it, written after each
saying: a restart says nothing again but what was being said when it came. Of one that cannot be reached one commit is
tried at a time, ever later. What is to be said, and how, is handed in (commitstatuses, commithook).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.model.keys import Internal, Key
from apiserver.registry import announced
from apiserver.storage.protocol import Check, Conflict, Record, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.forges.errors import ForgeError, NotSaid
from reconciler.plan.outcome import CommitOutcome

log = logging.getLogger(__name__)

_REFUSED = frozenset({400, 404, 409, 413, 422})
"""Answers that are about what is said: the commit may not be there yet, and never come."""
_OURS = frozenset({401, 403})
_SHORTEN = 12


class Announcement(NamedTuple):
    """`subject`: what it is about; of one subject the newest counts. `digest`: another one where it says something
    else. `send` raises ForgeError."""

    subject: str
    digest: str
    send: Callable[[], None]


Announcer = Callable[[CommitOutcome], Iterable[Announcement]]


@dataclass(frozen=True, slots=True)
class AnnouncingSettings:
    """Seconds: `first` to the second try, doubled for each further one up to `longest`, or `ours` where the fault is to
    be mended here (a token); `asked`: how long the other side may ask for. `tries`: of what is refused."""

    first: float = 2.0
    longest: float = 900.0
    ours: float = 60.0
    asked: float = 3600.0
    tries: int = 6


class Announcements(Controller[Key]):
    """`who` is told, in rows and metrics; `told`: hears in words that it fails, and that it does not any more. After
    `end` nothing more is said."""

    version = "1"
    resources = frozenset({Internal.OUTCOME})

    def __init__(
        self,
        who: str,
        store: Store,
        announcer: Announcer,
        told: Callable[[str], None] = lambda _: None,
        settings: AnnouncingSettings = AnnouncingSettings(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = f"announcements-{who}"
        self._who, self._store, self._announcer, self._told = who, store, announcer, told
        self._settings, self._clock = settings, clock
        self._ended = threading.Event()
        self._fails = 0
        self._not_before = 0.0
        self._refused: dict[str, int] = {}

    def end(self) -> None:
        self._ended.set()

    def begin(self) -> None:
        if self._who not in announced.failing(self._store):
            self._store.write(announced.put_failing(self._who, ""))

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None:
            yield entry.key

    def reconcile(self, key: Key) -> None:
        wait = self._not_before - self._clock()
        if wait > 0:
            self.queue.add_after(key, wait)
            return
        found = self._store.get(key)
        if found is None:
            self._refused.pop(key.name, None)
            return
        said = announced.told(self._store, self._who, key.name)
        for each in self._announcer(CommitOutcome.decode(found.value)):
            if said.get(each.subject) != each.digest and not self._say(found, each, said):
                return
        self._refused.pop(key.name, None)

    def _say(self, found: Record, each: Announcement, said: dict[str, str]) -> bool:
        """Whether to go on with this commit."""
        key = found.key
        if self._ended.is_set():
            self.queue.add_after(key, self._settings.first)
            return False
        try:
            each.send()
        except ForgeError as error:
            if error.status not in _REFUSED:
                self._away(key, error)
                return False
            self._reached()
            if not self._gives_up(key, error):
                return False
        else:
            self._reached()
        if self._ended.is_set():
            return False  # the store may be closed by now
        said[each.subject] = each.digest
        try:
            self._store.write(Check(key, found.revision), announced.put_told(self._who, key.name, said)).result()
        except Conflict:  # something else became of it meanwhile, or it was forgotten
            self.queue.add(key)
            return False
        return True

    def _away(self, key: Key, error: ForgeError) -> None:
        """Nobody is told anything before some time has passed."""
        ours = isinstance(error, NotSaid) or error.status in _OURS
        most = self._settings.ours if ours else self._settings.longest
        wait = min(self._settings.first * 2 ** min(self._fails, 30), most)
        wait = max(wait, min(error.after, self._settings.asked))
        self._fails += 1
        self._not_before = self._clock() + wait
        self.queue.add_after(key, wait)
        self._state(f"{error.text} ({error.hint})" if error.hint else error.text)

    def _gives_up(self, key: Key, error: ForgeError) -> bool:
        """What is refused is tried again, as the commit may come there yet."""
        tries = self._refused[key.name] = self._refused.get(key.name, 0) + 1
        if tries < self._settings.tries:
            self.queue.add_after(key, self._settings.first * 2**tries)
            return False
        log.warning("of commit %s this is not told: %s", key.name[:_SHORTEN], error.text)
        return True

    def _reached(self) -> None:
        self._fails = 0
        self._state("")

    def _state(self, text: str) -> None:
        """Told once, however often it is met."""
        if self._ended.is_set() or text == announced.failing(self._store).get(self._who, ""):
            return
        self._store.write(announced.put_failing(self._who, text)).result()
        if text:
            log.warning("the %s is not told what becomes of commits: %s", self._who, text)
            self._told(f"the {self._who} is not told what becomes of commits: {text}")
        else:
            log.info("the %s is told again what becomes of commits", self._who)
            self._told(f"the {self._who} is told again what becomes of commits")
