"""Writes of several keys of a controller that the store takes as one transaction.

Used by controllers that come to the same small write for thousands of keys; their manager has them hand over what is
left before it waits for it. Where such a transaction fails, none of it was written: each of its keys is looked at
again, and written by itself then, so one that cannot be written keeps no other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from apiserver.storage.protocol import Op, Store

K = TypeVar("K", bound=Hashable)


class Together(Generic[K]):
    """`most`: what the keys of one transaction weigh together, where one does not weigh more. Called by one thread at a
    time."""

    def __init__(self, store: Store, most: int) -> None:
        self._store, self._most = store, most
        self._keys: list[K] = []
        self._ops: list[Op] = []
        self._weight = 0
        self._answer: Future[list[int]] = Future()
        self._alone: set[K] = set()
        """Keys of transactions that failed."""

    def write(self, key: K, ops: Sequence[Op], weight: int = 1) -> Future[list[int]]:
        """Resolves once all that goes with it is written, to the revisions of all."""
        if key in self._alone:
            return self._store.write(*ops)
        if self._weight + weight > self._most:
            self.hand_over()
        self._weight += weight
        self._keys.append(key)
        self._ops += ops
        answer = self._answer
        if self._weight >= self._most:
            self.hand_over()
        return answer

    def hand_over(self) -> None:
        """What was gathered goes to the store."""
        if not self._keys:
            return
        keys, ops, answer = self._keys, self._ops, self._answer
        self._keys, self._ops, self._weight, self._answer = [], [], 0, Future()

        def failed(error: BaseException) -> None:
            self._alone.update(keys)
            answer.set_exception(error)

        def told(written: Future[list[int]]) -> None:
            error = written.exception()
            if error is None:
                answer.set_result(written.result())
            else:
                failed(error)

        try:
            written = self._store.write(*ops)
        except Exception as error:  # it is closed: whoever waits is to know
            failed(error)
        else:
            written.add_done_callback(told)

    def looked_at(self, key: K) -> None:
        """Whatever came of a key, its next write goes with others' again."""
        self._alone.discard(key)
