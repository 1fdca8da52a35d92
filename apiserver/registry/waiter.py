"""Who waits for what git is asked for: a request whose client may go away, and then wants nothing any more.

Made by the endpoints for one request, told by them that the client has gone; commits.py withdraws what was asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Waiter:
    """Methods are safe from every thread."""

    __slots__ = ("_calls", "_left", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Callable[[], None]] = []
        self._left = False

    @property
    def left(self) -> bool:
        """Whether nobody waits any more. It stays so."""
        return self._left

    def leave(self) -> None:
        """The client has gone. Returns at once: whoever waits for it ends in its own thread."""
        with self._lock:
            self._left = True
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    def on_leaving(self, call: Callable[[], None]) -> None:
        """`call` is called once, when the client goes; now, if it has gone. It must not wait."""
        with self._lock:
            if not self._left:
                self._calls.append(call)
                return
        call()
