"""How many of git's programs one worker runs at a time, and how many of them for one user: others wait their turn.

Called by git.py."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from apiserver.model.errors import StatusError


@dataclass(slots=True)
class _Turns:
    """Of one user. `asked`: requests that have a place or wait for one."""

    places: asyncio.Semaphore
    asked: int = 0


@dataclass(slots=True)
class Places:
    """`most` in all, half of them for one user. `wait`: seconds, after which a request is told to come again."""

    most: int
    wait: float = 60.0
    _free: asyncio.Semaphore = field(init=False)
    _users: dict[str, _Turns] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.most)

    @contextlib.asynccontextmanager
    async def one(self, user: str) -> AsyncIterator[None]:
        """Holds a place. Raises StatusError 429."""
        turns = self._users.setdefault(user, _Turns(asyncio.Semaphore(max(1, self.most // 2))))
        turns.asked += 1
        try:
            async with contextlib.AsyncExitStack() as held:
                try:
                    async with asyncio.timeout(self.wait):
                        await held.enter_async_context(turns.places)
                        await held.enter_async_context(self._free)
                except TimeoutError:
                    text = "too many clones and pushes at a time: try again later"
                    raise StatusError(429, "TooManyRequests", text, retry_after=10) from None
                yield
        finally:
            turns.asked -= 1
            if not turns.asked:
                self._users.pop(user, None)
