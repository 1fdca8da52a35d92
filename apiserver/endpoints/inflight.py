"""How much is answered at a time: bounds for one process and for one user in it, and deadlines.

Called by kube.py around every request. Watches are not counted and have no deadline: they wait, they do not work. Nor
are system:masters counted, so that an administrator gets in when everybody else is too many.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from apiserver.auth.user import User
from apiserver.auth.warrants import CLUSTER_NAME
from apiserver.endpoints.exchange import Exchange
from apiserver.model.errors import StatusError, bad_request
from apiserver.schema.messages import quote

Who = str | tuple[str, tuple[str, ...]]

_LOOK = 0.5
"""Seconds between two looks at what takes too long."""
_PRECISE = 5.0
"""Shorter limits than this get a timer of their own."""
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)([^\d.]*)")


class InFlight:
    """Counts the requests under way and ends those that take too long. For one event loop."""

    def __init__(self, most: int, most_per_user: int) -> None:
        self.most = most
        self.most_per_user = most_per_user
        self.all = 0
        self.by_user: Counter[Who] = Counter()
        self._limited: set[Slot] = set()
        self._look: asyncio.TimerHandle | None = None

    def slot(self, user: User, seconds: float) -> Slot:
        """For one request: enter it (StatusError 429 where there are too many) and do the work inside (StatusError 504
        after `seconds`)."""
        # ServiceAccounts of different workspaces have the same names.
        who = (user.name, user.extra.get(CLUSTER_NAME, ())) if user.extra else user.name
        return Slot(self, None if user.is_master else who, seconds)

    def limit(self, slot: Slot) -> None:
        """One timer looks after all of them: most requests take less than a timer of their own would cost."""
        loop = asyncio.get_running_loop()
        if slot.seconds < _PRECISE:
            slot.timer = loop.call_later(slot.seconds, slot.expire)
            return
        slot.ends = loop.time() + slot.seconds
        self._limited.add(slot)
        if self._look is None:
            self._look = loop.call_later(_LOOK, self._expire)

    def leave(self, slot: Slot) -> None:
        self._limited.discard(slot)

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for slot in [s for s in self._limited if s.ends <= now]:
            self._limited.discard(slot)
            slot.expire()
        self._look = loop.call_later(_LOOK, self._expire) if self._limited else None


class Slot:
    """One request under way."""

    __slots__ = ("_expired", "_inflight", "_task", "_who", "ends", "seconds", "timer")

    def __init__(self, inflight: InFlight, who: Who | None, seconds: float) -> None:
        """`who` None: not counted."""
        self._inflight = inflight
        self._who = who
        self._expired = False
        self._task: asyncio.Task[object] | None = None
        self.seconds = seconds
        self.ends = 0.0
        self.timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        inflight, who = self._inflight, self._who
        if who is not None:
            if inflight.all >= inflight.most or inflight.by_user[who] >= inflight.most_per_user:
                raise too_many()
            inflight.all += 1
            inflight.by_user[who] += 1
        self._task = asyncio.current_task()
        inflight.limit(self)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        inflight, who = self._inflight, self._who
        if self.timer is not None:
            self.timer.cancel()
        inflight.leave(self)
        if who is not None:
            inflight.all -= 1
            inflight.by_user[who] -= 1
            if not inflight.by_user[who]:
                del inflight.by_user[who]
        # Somebody else may have cancelled the request meanwhile; that goes on.
        if self._expired and self._task is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise too_long() from None

    def expire(self) -> None:
        self._expired = True
        if self._task is not None:
            self._task.cancel()


def too_many() -> StatusError:
    return StatusError(429, "TooManyRequests", "Too many requests, please try again later.", retry_after=1)


def too_long() -> StatusError:
    return StatusError(504, "Timeout", "Timeout: request did not complete within the allotted timeout")


def deadline(exchange: Exchange, most: float) -> float:
    """Seconds that the request may take: its `timeout` parameter, `most` at most. Raises StatusError 400."""
    if b"timeout=" not in exchange.scope["query_string"]:
        return most
    text = exchange.parameter("timeout")
    if not text:
        return most
    try:
        asked = seconds(text)
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None
    return min(asked, most) if asked > 0 else most


def seconds(text: str) -> float:
    """A duration as Go writes them (`32s`, `1m30.5s`, `-1h`, `0`). Raises ValueError in Go's words."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    sign = -1 if text[:1] == "-" else 1
    if rest == "0":
        return 0.0
    total, at = 0.0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            raise ValueError(f"time: invalid duration {quote(text)}")
        number, unit = part.groups()
        if not unit:
            raise ValueError(f"time: missing unit in duration {quote(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
        total += float(number) * _UNITS[unit]
        at = part.end()
    if not rest:
        raise ValueError(f"time: invalid duration {quote(text)}")
    return sign * total
