"""Work queue and manager."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.controllers import workqueue
from reconciler.controllers.controller import Controller
from reconciler.controllers.failures import Expected
from reconciler.controllers.manager import Manager
from reconciler.controllers.workqueue import WorkQueue


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
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


def test_how_many_keys_there_are_is_not_counted_one_by_one() -> None:
    class Waiting(set[str]):
        def __or__(self, _: Any) -> Any:
            raise AssertionError("all of them are looked at")

        __iter__ = __or__  # type: ignore[assignment]

    queue: WorkQueue[str] = WorkQueue()
    queue._waiting = Waiting()
    for key in ("a", "b", "c"):
        queue.add(key)
    assert queue.get(0) == "a"
    queue.add("a")
    assert len(queue) == 3
    queue.done("a")
    assert len(queue) == 3


class Clock:
    """What queues take for the time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(workqueue, "time", made)
    return made


def test_later_keys_come_in_order_of_time_and_the_earlier_appointment_stands(clock: Clock) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("slow", 0.05)
    queue.add_after("slow", 10)
    queue.add_after("quick", 0.01)
    assert queue.get(0) is None
    clock.now += 1
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["quick", "slow", None]
    clock.now += 20
    assert queue.get(0) is None


def test_a_key_that_comes_later_is_waited_for() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0.01)
    assert queue.get(30) == "a"


def test_retry_waits_longer_each_time(clock: Clock) -> None:
    queue: WorkQueue[str] = WorkQueue()
    for wait in (0.05, 0.1, 0.2):
        queue.retry("a")
        clock.now += wait - 0.01
        assert queue.get(0) is None
        clock.now += 0.02
        assert queue.get(0) == "a"
        queue.done("a")
    queue.forget("a")
    assert queue.failures("a") == 0


def test_close_wakes_who_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    got: list[str | None] = []
    thread = threading.Thread(target=lambda: got.append(queue.get()))
    thread.start()
    queue.close()
    thread.join(30)
    assert got == [None]


class Failing(Controller[str]):
    """Fails twice."""

    name = "failing"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def reconcile(self, key: str) -> None:
        self.seen.append(key)
        if len(self.seen) == 1:
            raise ValueError("password=hunter2")
        if len(self.seen) == 2:
            raise Expected("the target does not answer")


def test_a_key_that_failed_is_tried_again_and_no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    failing = Failing()
    manager = Manager("test", [failing])
    with caplog.at_level(logging.WARNING):
        manager.start()
        failing.queue.add("a")
        until(lambda: len(failing.seen) == 3)
        assert manager.stop(30)
    assert "hunter2" not in caplog.text
    assert "ValueError at test_manager.py" in caplog.text
    assert "failing a: the target does not answer" not in caplog.text, "only every so often"
