"""Whose rendering is next, among sources: a workspace with a source and all that stand below it take turns as one.

Used by rendersahead, which renders, under a lock of its own; pure. Each source has one directory at work. Within it
whoever waits for something (a head that is to count, a workspace that is judged) has turns, and of what he waits for
each workspace. Sources of which something took long last time have half of the places together. After a minute of work
the rest of a workspace is too much, and after ten all that somebody waits for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.loading.expected import TOGETHER
from reconciler.rendering.request import RenderRequest

LONG = 5.0
"""Seconds of one rendering from which on its source is one of those that take long."""
ALL = 600.0
"""Seconds of work in which all has to come that somebody waits for, of all workspaces in a source."""


class Wisher(NamedTuple):
    """Who waits: a workspace, or a head of the source."""

    path: str
    head: bool = False


class SourceTurn(NamedTuple):
    """One directory at work. `workspace`: whose it is."""

    source: str
    who: Wisher
    workspace: str
    request: RenderRequest
    since: float


class TurnEnd(NamedTuple):
    """`over`: nothing is left of what somebody waits for; `too_many`: what is not rendered since it would take too
    long."""

    over: bool = False
    too_many: tuple[RenderRequest, ...] = ()


@dataclass(slots=True)
class _Wish:
    """What somebody waits for. `wanted`: digests of all of it; `left`: by workspace, whose turn is next first; `spent`:
    seconds of what was rendered, by workspace."""

    wanted: frozenset[str] = frozenset()
    left: dict[str, deque[RenderRequest]] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)

    def want(self, missing: Mapping[str, Collection[RenderRequest]], at_work: str) -> None:
        """What was wanted before may be of a head that its branch has no more. `at_work`: the digest of what is."""
        digests = frozenset(each.digest for found in missing.values() for each in found)
        if not digests <= self.wanted:
            self.wanted, self.spent = digests, {}
        left = {path: deque(each for each in found if each.digest != at_work) for path, found in missing.items()}
        self.left = {path: found for path, found in left.items() if found}

    def take(self) -> tuple[str, RenderRequest]:
        workspace = next(iter(self.left))
        found = self.left.pop(workspace)
        request = found.popleft()
        if found:
            self.left[workspace] = found
        return workspace, request

    def took(self, workspace: str, seconds: float) -> tuple[RenderRequest, ...]:
        """What is too much by now."""
        self.spent[workspace] = self.spent.get(workspace, 0.0) + seconds
        late = [workspace] if self.spent[workspace] >= TOGETHER else []
        late = [*self.left] if sum(self.spent.values()) >= ALL else late
        return tuple(each for path in late for each in self.left.pop(path, ()))


@dataclass(slots=True)
class _Source:
    """While somebody waits for something of it. `wishes`: whose turn is next first; `longest`: seconds of one
    rendering."""

    wishes: dict[Wisher, _Wish] = field(default_factory=dict)
    at_work: SourceTurn | None = None
    longest: float = 0.0

    def next(self) -> Wisher | None:
        return next((who for who, wish in self.wishes.items() if wish.left), None) if self.at_work is None else None


class SourceTurns:
    """`places`: how many are at work at once."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._sources: dict[str, _Source] = {}
        """By the workspace that has it; whose turn is next is first."""
        self._long: set[str] = set()

    @property
    def sources(self) -> int:
        """How many have something to render."""
        return len(self._sources)

    def waits(self, source: str, who: Wisher) -> bool:
        found = self._sources.get(source)
        return found is not None and who in found.wishes

    def want(self, source: str, who: Wisher, missing: Mapping[str, Collection[RenderRequest]]) -> None:
        """By workspace what somebody waits for, in place of what he waited for before."""
        found = self._sources.setdefault(source, _Source())
        at_work = found.at_work.request.digest if found.at_work is not None and found.at_work.who == who else ""
        found.wishes.setdefault(who, _Wish()).want(missing, at_work)

    def take(self, now: float) -> SourceTurn | None:
        """What is rendered next: it is at work until `done`."""
        at_work = [each.at_work for each in self._sources.values() if each.at_work is not None]
        long = sum(1 for each in at_work if now - each.since >= LONG or each.source in self._long)
        full = long >= max(1, self._places // 2)
        for source, each in self._sources.items():
            who = each.next() if not (full and source in self._long) else None
            if who is not None:
                self._sources[source] = self._sources.pop(source)
                wish = each.wishes[who] = each.wishes.pop(who)
                each.at_work = SourceTurn(source, who, *wish.take(), now)
                return each.at_work
        return None

    def done(self, turn: SourceTurn, now: float) -> TurnEnd:
        """It has come, or is late."""
        source, took = self._sources.get(turn.source), now - turn.since
        if took >= LONG:
            self._long.add(turn.source)
        if source is None or source.at_work is not turn:
            return TurnEnd()
        source.at_work, source.longest, wish = None, max(source.longest, took), source.wishes[turn.who]
        too_many = wish.took(turn.workspace, took)
        if wish.left:
            return TurnEnd(too_many=too_many)
        del source.wishes[turn.who]
        if not source.wishes:
            del self._sources[turn.source]
            if source.longest < LONG:
                self._long.discard(turn.source)
        return TurnEnd(True, too_many)

    def clear(self) -> None:
        """Forgets what is still to be begun."""
        self._sources.clear()
