"""What a request is called: in its answer (`Audit-Id`, as kube-apiserver's) and in each line of the log about it.

Given in app.py to each request. A client that has a name for it already (`Audit-Id`, `X-Request-Id`) may keep that,
where it is short and plain: it stands in the log. It need not be the only one of that name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, MutableMapping
from contextvars import ContextVar
from typing import Any

HEADER = b"audit-id"
REQUEST_ID = "treeplane.request"
"""In the scope of a request."""
REQUEST: ContextVar[str] = ContextVar("request", default="")
"""Of the request that is served here; "": none is."""

_ASKED = frozenset({HEADER, b"x-request-id"})
_PLAIN = re.compile(rb"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_BYTES, _AT_ONCE = 8, 512
"""Of a name that is drawn here; names that are drawn at once."""


class RequestIds:
    """Of one process. By chance: a number would tell each tenant how many requests others make."""

    def __init__(self) -> None:
        self._drawn = _names()

    def name(self, scope: MutableMapping[str, Any]) -> str:
        """Gives a request its name, in its scope and for what its task logs."""
        found = scope[REQUEST_ID] = self.of(scope["headers"])
        REQUEST.set(found)
        return found

    def of(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        for name, value in headers:
            if name in _ASKED and _PLAIN.fullmatch(value):
                return value.decode()
        return next(self._drawn)


def _names() -> Iterator[str]:
    """Many are drawn at once: to ask the kernel for each costs more than all the rest."""
    while True:
        drawn = os.urandom(_BYTES * _AT_ONCE).hex()
        yield from (drawn[at : at + 2 * _BYTES] for at in range(0, len(drawn), 2 * _BYTES))
