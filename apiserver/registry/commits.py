"""Asks for commits and proposals, and waits for what becomes of them. One per API worker; the reconciler answers
(intents.py).

Whoever waits costs a thread, which is woken once: with the answer, or because the intent could not be put down.
Whenever the store changes one thread looks for all answers that are waited for, reads what belongs to those that are
there, and deletes them together. Whoever waits no longer, since time is over or the client has gone, withdraws: the
intent is deleted as it was put down, by compare-and-swap, so it is either served or withdrawn. Whoever serves looks
once more before the branch is moved.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

import orjson

from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.registry.intents import Intent, answer_key, intent_key
from apiserver.registry.sinks import Write, Written
from apiserver.registry.waiter import Waiter
from apiserver.storage.protocol import NEVER, Check, Conflict, Delete, Record, Store

WAIT = 30.0
"""Seconds until a commit has to be made."""


class _Ended(NamedTuple):
    """What an intent was answered, and its object as it was stored then or later."""

    answer: Record
    record: Record | None


class _Asked(NamedTuple):
    """An intent that is waited for. `ended`: None where nobody waits any more; the error where it could not be put
    down."""

    intent: Intent
    ended: Future[_Ended | None]


class Commits:
    """Methods are safe from every thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, _Asked] = {}
        self._changed = threading.Condition()
        self._subscribed = False

    def begin(self, intent: Intent, waiter: Waiter) -> Callable[[], Written]:
        """As Sink.begin, for as long as `waiter` is there."""
        if waiter.left:
            raise _withdrawn()
        asked = _Asked(intent, Future())
        with self._lock:
            self._subscribe()
            self._waiting[intent.id] = asked
        stored = self._store.write(*intent.ops())
        stored.add_done_callback(lambda done: self._fail(asked, done.exception()))
        waiter.on_leaving(lambda: self._leave(asked))

        def wait() -> Written:
            try:
                return self._result(intent, self._ended(asked, stored, waiter))
            except Conflict as conflict:
                if conflict.key == intent.place:
                    self._await_turn(intent.place, intent.deadline, waiter)
                raise
            finally:
                with self._lock:
                    self._waiting.pop(intent.id, None)

        return wait

    def begin_in_turn(self, write: Write, waiter: Waiter) -> Callable[[], Written]:
        """As Sink.begin, for what changes the store alone and may not come between an intent and its end."""
        with self._lock:
            self._subscribe()
        deadline, reserved = time.time() + WAIT, intent_key(write.key)
        stored = self._store.write(*write.ops(), Check(reserved, NEVER))

        def wait() -> Written:
            try:
                return Written(stored.result()[0])
            except Conflict as conflict:
                if conflict.key == reserved:
                    self._await_turn(reserved, deadline, waiter)
                raise

        return wait

    # -- waiting

    def _subscribe(self) -> None:
        if not self._subscribed:
            self._subscribed = True
            self._store.subscribe(self._ring)

    def _ring(self) -> None:
        with self._lock:
            waiting = [*self._waiting.values()]
        if waiting:
            self._look(waiting)
        self._notify()

    def _look(self, waiting: Sequence[_Asked]) -> None:
        """Tells those who are answered. Nobody reads their answers again."""
        found = self._store.get_many([answer_key(each.intent.id) for each in waiting])
        there = [(each, answer) for each, answer in zip(waiting, found, strict=True) if answer is not None]
        if not there:
            return
        records = self._store.get_many([each.intent.key for each, _ in there])
        told = [
            Delete(answer.key)
            for (each, answer), record in zip(there, records, strict=True)
            if self._tell(each, _Ended(answer, record))
        ]
        if told:
            self._store.write(*told)

    def _tell(self, asked: _Asked, ended: _Ended | None) -> bool:
        """Whether whoever waits did not know yet."""
        with self._lock:
            told = not asked.ended.done()
            if told:
                asked.ended.set_result(ended)
        return told

    def _leave(self, asked: _Asked) -> None:
        self._tell(asked, None)

    def _fail(self, asked: _Asked, error: BaseException | None) -> None:
        with self._lock:
            if error is not None and not asked.ended.done():
                asked.ended.set_exception(error)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _ended(self, asked: _Asked, stored: Future[list[int]], waiter: Waiter) -> _Ended:
        """Raises StatusError where the intent was withdrawn, or nobody answered, and Conflict where it could not be put
        down."""
        intent = asked.intent
        with suppress(TimeoutError):
            found = asked.ended.result(max(0.0, intent.deadline - time.time()))
            if found is not None:
                return found
        revision = stored.result()[0]
        try:
            self._store.write(Delete(intent.place, revision)).result()
        except Conflict:
            # It ended first, and the answer came with its end: it stands there, or was told just now.
            if (answer := self._store.get(answer_key(intent.id))) is not None:
                self._store.write(Delete(answer.key))
                return _Ended(answer, self._store.get(intent.key))
            if asked.ended.done() and (found := asked.ended.result()) is not None:
                return found
        raise _withdrawn() if waiter.left else _late()

    def _await_turn(self, reserved: Key, deadline: float, waiter: Waiter) -> None:
        """Until whoever writes the object now is done. `reserved`: where his intent stands."""
        waiter.on_leaving(self._notify)
        with self._changed:
            free = self._changed.wait_for(
                lambda: waiter.left or self._store.get(reserved) is None, timeout=max(0.0, deadline - time.time())
            )
        if waiter.left:
            raise _withdrawn()
        if not free:
            raise _late()

    # -- answers

    def _result(self, intent: Intent, ended: _Ended) -> Written:
        answer, record = ended
        told = orjson.loads(answer.value)
        if "proposed" in told:
            return Written(intent.base, stored=False, warnings=(told["proposed"],))
        if told.get("done"):
            revision = answer.revision - 1
            return Written(revision, None if intent.value is None else self._value_at(record, revision))
        if told.get("kept") and (record is not None or intent.value is None):
            return Written(record.revision, record.value) if record is not None else Written(0)
        if "code" in told:
            raise StatusError(told["code"], told["reason"], told["message"], told["details"])
        raise Conflict(intent.key, intent.base, record.revision if record is not None else 0)

    def _value_at(self, record: Record | None, revision: int) -> bytes | None:
        """Of an object that may have been written again since."""
        if record is not None and record.revision == revision:
            return record.value
        changes = self._store.changes(revision - 1, limit=1)
        return changes[0].value if changes and changes[0].revision == revision else None


def _late() -> StatusError:
    message = "Timeout: the write was not committed in time, and may still be: look before you try again"
    return StatusError(504, "Timeout", message)


def _withdrawn() -> StatusError:
    """Nobody reads it but metrics and logs; the code is nginx's for the case, which has none of HTTP's."""
    return StatusError(499, "ClientClosedRequest", "the client has gone: what it asked for is withdrawn")
