"""Waiting for commits: who is answered is told once, and answers are read and deleted together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future

import orjson
import pytest

from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal, Key
from apiserver.registry.commits import Commits
from apiserver.registry.intents import DONE, Intent, answer_key, waiting
from apiserver.registry.waiter import Waiter
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import NEVER, Conflict, Delete, Op, Put


class Watched(MemoryStore):
    """Notes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Sequence[Op]] = []

    def write(self, *ops: Op) -> Future[list[int]]:
        self.written.append(ops)
        return super().write(*ops)


def asked(name: str, seconds: float = 30.0) -> Intent:
    key = Key("configmaps", "c", "default", name)
    return Intent(key, "ann", b"{}", NEVER, deadline=time.time() + seconds)


def test_answers_are_told_once_and_deleted_together() -> None:
    store = Watched()
    commits = Commits(store)
    waits = {name: commits.begin(asked(name), Waiter()) for name in ("a", "b", "c")}
    intents = waiting(store)
    stored = [orjson.dumps({"name": each.key.name}) for each in intents]
    ends = [[Put(each.key, value, NEVER), *each.answered(DONE)] for each, value in zip(intents, stored, strict=True)]
    store.written.clear()
    store.write(*(op for end in ends for op in end)).result()
    found = {name: wait() for name, wait in waits.items()}
    for each, value in zip(intents, stored, strict=True):
        record = store.get(each.key)
        assert record is not None
        assert found[each.key.name] == (record.revision, value, True, ())
    answers = {answer_key(each.id) for each in intents}
    [deleted] = [ops for ops in store.written if any(isinstance(op, Delete) and op.key in answers for op in ops[:1])]
    assert {op.key for op in deleted if isinstance(op, Delete)} == answers
    assert not store.count(Internal.ANSWER)


def test_who_cannot_put_an_intent_down_hears_of_it() -> None:
    store = MemoryStore()
    store.write(Put(asked("a").key, b"{}", NEVER)).result()
    with pytest.raises(Conflict):
        Commits(store).begin(asked("a"), Waiter())()


def test_who_waits_in_vain_takes_it_back() -> None:
    store = MemoryStore()
    with pytest.raises(StatusError) as late:
        Commits(store).begin(asked("a", 0.0), Waiter())()
    assert late.value.code == 504
    assert not waiting(store)


def test_who_leaves_takes_it_back() -> None:
    store, waiter = MemoryStore(), Waiter()
    wait = Commits(store).begin(asked("a"), waiter)
    waiter.leave()
    with pytest.raises(StatusError) as gone:
        wait()
    assert gone.value.code == 499
    assert not waiting(store)
