"""How many Events there are of what happens again and again, by the rules and numbers of Kubernetes' own clients: what
is said twice is one Event with a count, many like ones are told together, and of one object there are not too many.

Called by controllers/notices. It remembers the last few thousand, in memory alone. Pure but for that.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from reconciler.plan.notices import About, Notice

ALIKE = 10
"""Events of one object and reason that say something else each; from here on they are told as one."""
WITHIN = 600.0
"""Seconds after which those count no more."""
BURST, REFILL = 25, 300.0
"""Events of one object at once, and seconds until there may be one more."""
TOGETHER = "(combined from similar events): "
_REMEMBERED = 4096

K = TypeVar("K")
V = TypeVar("V")


class Saying(NamedTuple):
    """What an Event says. `first`: the revision of the notice that it began with, by which it is called; `times`: how
    often it was said."""

    notice: Notice
    first: int
    times: int


class _Recent(Generic[K, V]):
    """The last that were asked for."""

    def __init__(self) -> None:
        self._found: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, new: V) -> V:
        found = self._found.setdefault(key, new)
        self._found.move_to_end(key)
        if len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)
        return found


@dataclass(slots=True)
class _Alike:
    last: float
    messages: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Series:
    first: int
    count: int = 0


@dataclass(slots=True)
class _Tokens:
    last: float
    left: float = BURST


_Sort = tuple[str, About, str, bool]


class Correlation:
    """Called by one thread at a time. `now`: seconds that never go back."""

    def __init__(self) -> None:
        self._alike: _Recent[_Sort, _Alike] = _Recent()
        self._series: _Recent[tuple[_Sort, str], _Series] = _Recent()
        self._tokens: _Recent[tuple[str, About], _Tokens] = _Recent()

    def say(self, notice: Notice, now: float) -> Saying | None:
        """None: of this object too much was said by now."""
        sort = (notice.cluster, notice.about, notice.reason, notice.warning)
        alike = self._alike.get(sort, _Alike(now))
        if now - alike.last > WITHIN:
            alike.messages.clear()
        alike.last = now
        alike.messages[notice.message] = None
        message = notice.message
        if len(alike.messages) >= ALIKE:
            del alike.messages[next(iter(alike.messages))]
            notice, message = notice._replace(message=TOGETHER + notice.message), ""
        series = self._series.get((sort, message), _Series(notice.revision))
        series.count += 1
        return Saying(notice, series.first, series.count) if self._may(notice, now) else None

    def _may(self, notice: Notice, now: float) -> bool:
        tokens = self._tokens.get((notice.cluster, notice.about), _Tokens(now))
        tokens.left = min(BURST, tokens.left + (now - tokens.last) / REFILL)
        tokens.last = now
        if tokens.left < 1:
            return False
        tokens.left -= 1
        return True
