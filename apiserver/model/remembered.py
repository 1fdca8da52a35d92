"""What was found out before, bounded by the memory that it takes.

Called where entries are of any size that a tenant likes: the loader's files (one of three megabytes of braces takes
twenty times that when it is read), the API's records of workspaces. What was asked for least recently goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from sys import getsizeof
from threading import Lock
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """At most `most` bytes, as far as whoever puts something there tells its size. Safe from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 0
        """Bytes that are taken."""
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def forget(self, key: K) -> None:
        with self._lock:
            self.size -= self._kept.pop(key, (None, 0))[1]

    def copy(self) -> Remembered[K, V]:
        """What is remembered now, for one whose own finds are nobody else's."""
        out: Remembered[K, V] = Remembered(self._most)
        with self._lock:
            out.size, out._kept = self.size, OrderedDict(self._kept)
        return out

    def put(self, key: K, value: V, size: int) -> None:
        """`size`: bytes of both. What is bigger than all together may be is not kept."""
        with self._lock:
            self.size += size - self._kept.pop(key, (None, 0))[1]
            self._kept[key] = value, size
            while self.size > self._most:
                self.size -= self._kept.popitem(last=False)[1][1]


def footprint(value: Any) -> int:
    """Bytes that a value as JSON has them takes in memory."""
    total, rest = 0, [value]
    while rest:
        part = rest.pop()
        total += getsizeof(part)
        if isinstance(part, dict):
            rest += part
            rest += part.values()
        elif isinstance(part, list):
            rest += part
    return total
