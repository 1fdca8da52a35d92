"""Answers to writes that nobody came for: the API's worker that asked has died.

Called by the committer, each time that it serves. Who asked takes an answer away within moments, so nearly always there
is none to look at.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from apiserver.model.keys import Internal
from apiserver.registry.intents import is_unread
from apiserver.storage.protocol import Conflict, Delete, Store

_EVERY = 60.0
"""Seconds between two looks."""


class Unfetched:
    """`now`: seconds since 1970."""

    def __init__(self, store: Store, now: Callable[[], float] = time.time) -> None:
        self._store, self._now = store, now
        self._next = 0.0

    def sweep(self) -> None:
        """Takes away those for which nobody waits any more, if the last look is long ago."""
        now = self._now()
        if now < self._next:
            return
        self._next = now + _EVERY
        for record in self._store.scan(Internal.ANSWER, count=False).records:
            if is_unread(record, now):
                try:
                    self._store.write(Delete(record.key, record.revision)).result()
                except Conflict:
                    continue  # it was fetched after all
