"""Work queue, loop and informer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import pytest

from apiserver.model.keys import Key
from apiserver.storage.protocol import Change, Compacted
from reconciler.controllers.runtime import Expected, Informer, Loop, WorkQueue


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        pause.wait(0.005)


def test_a_key_waits_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["a", "b", None]


def test_a_key_added_while_at_work_comes_again_after_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert queue.get(0) == "a"
    queue.add("a")
    assert queue.get(0) is None
    queue.done("a")
    assert queue.get(0) == "a"


def test_later_keys_come_in_order_of_time_and_the_earlier_appointment_stands() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("slow", 0.05)
    queue.add_after("slow", 10)
    queue.add_after("quick", 0.01)
    assert [queue.get(1), queue.get(1), queue.get(0)] == ["quick", "slow", None]


def test_retry_waits_longer_each_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waits = []
    for _ in range(3):
        begun = time.monotonic()
        queue.retry("a")
        assert queue.get(2) == "a"
        queue.done("a")
        waits.append(time.monotonic() - begun)
    assert waits[0] < waits[1] < waits[2]
    queue.forget("a")
    assert queue.failures("a") == 0


def test_close_wakes_who_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    got: list[str | None] = []
    thread = threading.Thread(target=lambda: got.append(queue.get()))
    thread.start()
    queue.close()
    thread.join(5)
    assert got == [None]


def test_a_loop_tries_again_and_logs_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    queue: WorkQueue[str] = WorkQueue()
    seen: list[str] = []

    def handler(key: str) -> None:
        seen.append(key)
        if len(seen) == 1:
            raise ValueError("password=hunter2")
        if len(seen) == 2:
            raise Expected("the target does not answer")

    loop = Loop("test", queue, handler)
    with caplog.at_level(logging.WARNING):
        loop.start()
        queue.add("a")
        until(lambda: len(seen) == 3)
        loop.stop()
    assert "hunter2" not in caplog.text
    assert "ValueError at test_runtime.py" in caplog.text


class FakeLog:
    """A store's log, and nothing else of it."""

    def __init__(self) -> None:
        self.entries: list[Change] = []
        self.low = 0
        self.ring: Callable[[], None] = lambda: None

    def revision(self) -> int:
        return max([self.low, *(c.revision for c in self.entries)])

    def changes(self, after: int, limit: int = 10_000) -> list[Change]:
        if after < self.low:
            raise Compacted(after, self.low)
        return [c for c in self.entries if c.revision > after][:limit]

    def subscribe(self, ring: Callable[[], None]) -> Callable[[], None]:
        self.ring = ring
        return lambda: None

    def append(self, revision: int, resource: str) -> None:
        self.entries.append(Change(revision, Key(resource, "c", "", "n"), b"{}", None, 0, b""))
        self.ring()


def test_the_informer_hands_out_what_was_asked_for_and_tells_of_gaps() -> None:
    store = FakeLog()
    informer = Informer(store)  # type: ignore[arg-type]
    some: list[int] = []
    every: list[int] = []
    gaps: list[bool] = []

    def broken(change: Change) -> None:
        raise ValueError

    informer.on(frozenset({"a"}), broken)
    informer.on(frozenset({"a"}), lambda c: some.append(c.revision))
    informer.on(None, lambda c: every.append(c.revision))
    informer.on_gap(lambda: gaps.append(True))
    informer.start(after=0)
    store.append(1, "a")
    store.append(2, "b")
    until(lambda: informer.reached == 2)
    assert (some, every, gaps) == ([1], [1, 2], [])
    store.low = 10
    store.ring()
    until(lambda: gaps == [True])
    store.append(11, "a")
    until(lambda: informer.reached == 11)
    informer.stop()
    assert (some, every) == ([1, 11], [1, 2, 11])
