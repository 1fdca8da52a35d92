"""Threads for requests that a webhook may hold up: each definition's keep to a lane of their own.

Converting by a webhook is synchronous and may take half a minute. Whatever may need it runs here and not in the event
loop or in the threads of other requests; a definition has but a few threads at a time and a short queue, so that a
webhook that is dead holds up requests for its own objects and no others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from apiserver.model.errors import StatusError
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Store

T = TypeVar("T")

AT_ONCE = 4
"""Threads of one lane."""
WAITING = 32
"""Requests that wait in one lane; more are refused."""
_THREADS = 256


Name = tuple[int, str, str]


def lane_of(store: Store, cluster: str | None, kind: ServedKind) -> Name:
    """Of the objects of a kind in a logical cluster, None for all of a store."""
    return id(store), cluster or "", kind.storage


class Lanes:
    """One per process. Used in the event loop's thread."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lane")
        self._lanes: dict[Name, _Lane] = {}

    async def run(self, lane: Name, work: Callable[[], T]) -> T:
        """Raises StatusError 429 if too many wait, and what `work` raises."""
        found = self._lanes.setdefault(lane, _Lane())
        if found.inside >= AT_ONCE + WAITING:
            text = f"too many requests wait for the conversion webhook of {lane[2]}; please try again"
            raise StatusError(429, "TooManyRequests", text, retry_after=1)
        found.inside += 1
        try:
            async with found.free:
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            found.inside -= 1
            if not found.inside:
                self._lanes.pop(lane, None)


class _Lane:
    def __init__(self) -> None:
        self.inside = 0
        self.free = asyncio.Semaphore(AT_ONCE)


lanes = Lanes()
