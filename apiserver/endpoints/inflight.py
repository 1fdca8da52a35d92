"""How much is answered at a time: bounds for one process and for one user in it, and deadlines.

Called by kube.py around every request. Watches are not counted and have no deadline: they wait, they do not work. Nor
are system:masters counted, so that an administrator gets in when everybody else is too many.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from apiserver.auth.scopes import CLUSTER_NAME
from apiserver.auth.user import User
from apiserver.endpoints.exchange import Exchange
from apiserver.model.errors import StatusError, bad_request
from apiserver.schema.messages import quote

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)([^\d.]*)")


class InFlight:
    """Counts the requests under way. For one event loop."""

    def __init__(self, most: int, most_per_user: int) -> None:
        self._most = most
        self._most_per_user = most_per_user
        self._all = 0
        self._by_user: Counter[tuple[str, tuple[str, ...]]] = Counter()

    @contextmanager
    def counted(self, user: User) -> Iterator[None]:
        """Raises StatusError 429 where there are too many already."""
        if user.is_master:
            yield
            return
        # ServiceAccounts of different workspaces have the same names.
        name = user.name, user.extra.get(CLUSTER_NAME, ())
        if self._all >= self._most or self._by_user[name] >= self._most_per_user:
            raise too_many()
        self._all += 1
        self._by_user[name] += 1
        try:
            yield
        finally:
            self._all -= 1
            self._by_user[name] -= 1
            if not self._by_user[name]:
                del self._by_user[name]


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
