"""What a request is called: in its answer (`Audit-Id`, as kube-apiserver's) and in each line of the log about it.

Given in app.py to each request. A client that has a name for it already (`Audit-Id`, `X-Request-Id`) may keep that,
where it is short and plain: it stands in the log. It need not be the only one of that name.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, MutableMapping
from contextvars import ContextVar
from itertools import count
from typing import Any

HEADER = b"audit-id"
REQUEST_ID = "treeplane.request"
"""In the scope of a request."""
REQUEST: ContextVar[str] = ContextVar("request", default="")
"""Of the request that is served here; "": none is."""

_ASKED = frozenset({HEADER, b"x-request-id"})
_PLAIN = re.compile(rb"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


class RequestIds:
    """Of one process: its own begin with what no other process has."""

    def __init__(self) -> None:
        self._begin = secrets.token_hex(6)
        self._numbers = count(1)

    def name(self, scope: MutableMapping[str, Any]) -> str:
        """Gives a request its name, in its scope and for what its task logs."""
        found = scope[REQUEST_ID] = self.of(scope["headers"])
        REQUEST.set(found)
        return found

    def of(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        for name, value in headers:
            if name in _ASKED and _PLAIN.fullmatch(value):
                return value.decode()
        return f"{self._begin}-{next(self._numbers):x}"
