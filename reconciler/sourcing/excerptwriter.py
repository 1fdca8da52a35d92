"""Writes excerpts to tenants' repositories: each when it is another one than is there, and not too often.

Made by whoever holds the fleet, one for a data directory, beside the follower, whose timetable it has: so none waits
for one that is slow, and one with faults is tried ever more seldom. Nobody waits for what is written here. Of what
changes while it waits the last counts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from reconciler.repository.errors import RepositoryError
from reconciler.repository.library import Sign
from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.excerptpush import ExcerptPush
from reconciler.sourcing.excerpts import Excerpt, Excerpted, WrittenExcerpt
from reconciler.sourcing.faults import SourceFault, VisitGivenUp
from reconciler.sourcing.settings import FollowSettings
from reconciler.sourcing.timetabled import Timetabled
from reconciler.sourcing.visit import within
from reconciler.sourcing.written import WrittenHere

log = logging.getLogger(__name__)

_BROKEN = SourceFault("Broken", "a fault of this server's", "see its log")


@dataclass(slots=True)
class _Place:
    """`there`: what is known to be there."""

    excerpt: Excerpt
    there: WrittenExcerpt | None
    fault: SourceFault | None = None

    @property
    def written(self) -> bool:
        return self.there is not None and self.there.says(self.excerpt)


class ExcerptWriter(Timetabled[ExcerptPush]):
    """`store`: where is kept what was written, of which no other process writes any. `settings.least`: seconds between
    two that are written to one repository; `interval`: after which one with faults is tried again, twice that the next
    time, up to `longest`. `sign`, `check`: see ExcerptPush. `news`: called from a thread of its own when `known` says
    something else. Begin with `start`."""

    def __init__(
        self,
        store: SourceStore,
        settings: FollowSettings,
        news: Callable[[], None],
        sign: Sign | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(store, settings, "excerpts", "excerpt")
        self._news, self._sign, self._check = news, sign, check
        self._places: dict[str, _Place] = {}

    def write(self, wanted: Mapping[str, Excerpt]) -> None:
        """The whole set, by the source's name. Cheap. What is no longer in it stays where it was written."""
        with self._changed:
            new = {name: _Place(each, self._recall(name)) for name, each in wanted.items() if name not in self._places}
            asked = set[str]()
            for name in wanted.keys() & self._places.keys():
                place, excerpt = self._places[name], wanted[name]
                # Another version is no reason to try again where it could not be written.
                if place.excerpt.place != excerpt.place or (place.excerpt != excerpt and place.fault is None):
                    asked.add(name)
                place.excerpt = excerpt
            self._places = {name: new.get(name) or self._places[name] for name in wanted}
            self._told = True
            now = time.monotonic()
            self._timetable.follow(wanted, now, {name for name in new if new[name].there is not None})
            self._timetable.ask(asked, now)
            self._changed.notify_all()

    def known(self, name: str) -> Excerpted:
        """Nothing, of one that is not written."""
        with self._changed:
            place = self._places.get(name)
            if place is None:
                return Excerpted()
            fault = place.fault
            if fault is None:
                return Excerpted(place.written)
            return Excerpted(False, fault.reason, fault.what, fault.hint)

    def _wanted(self) -> Set[str]:
        return self._places.keys()

    def _work(self, name: str) -> ExcerptPush | None:
        place = self._places[name]
        if place.written and place.fault is None:
            return None
        return ExcerptPush(name, place.excerpt, within(self._settings.bounds.visit), self._sign, self._check)

    def _make(self, work: ExcerptPush) -> None:
        result: WrittenExcerpt | SourceFault | None = _BROKEN
        url = work.excerpt.place.address.url
        try:
            result = work.make(self._store, self._settings.bounds)
        except VisitGivenUp:
            result = None
        except SourceFault as fault:
            result = fault
        except (RepositoryError, OSError) as error:
            log.warning("what is to be written to %s cannot be made: %s", url, error)
        except Exception:
            log.exception("writing to %s failed", url)
        finally:
            if self._ended(work, result):
                self._news()

    def _ended(self, push: ExcerptPush, result: WrittenExcerpt | SourceFault | None) -> bool:
        """Whether something else is known than before."""
        with self._changed:
            now = time.monotonic()
            self._over(push, now, isinstance(result, WrittenExcerpt))
            place = self._places.get(push.name)
            if place is None or result is None:
                return False
            before = place.written, str(place.fault)
            if isinstance(result, WrittenExcerpt):
                place.there, place.fault = result, None
                if not place.written:  # it became another one meanwhile
                    self._timetable.ask({push.name}, now)
            else:
                if str(place.fault) != str(result):
                    log.warning("%s is not written to: %s", push.excerpt.place.address.url, result)
                place.fault = result
            return before != (place.written, str(place.fault))

    def _recall(self, name: str) -> WrittenExcerpt | None:
        """What a former self wrote, as far as it heard that it arrived."""
        try:
            found = self._store.open(name)
            here = WrittenHere(found) if found is not None else None
            return here.written() if here is not None and here.sent() is None else None
        except (RepositoryError, ValueError) as error:
            log.warning("%s", error)
            return None
