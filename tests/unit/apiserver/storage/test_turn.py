"""Turns of the threads that work with the store: an order, and never a reason to stand still."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from apiserver.storage import turn as turns
from apiserver.storage.turn import TURN, Answer, Turn

LONG = 30.0


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[threading.Thread]:
    """`work` in another thread, which has ended behind this."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(LONG)
        assert not thread.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_who_waits_has_his_turn_when_it_is_given() -> None:
    turn = Turn(patience=LONG)
    seen: list[str] = []
    turn.take()

    def other() -> None:
        with turn:
            seen.append("other")

    with beside(other):
        wait_for(lambda: bool(turn._waiting))
        seen.append("own")
        turn.give()
    assert seen == ["own", "other"]


def test_a_turn_goes_on_until_it_is_over_and_somebody_waits() -> None:
    turn = Turn(length=LONG, patience=LONG)
    turn.take()
    with beside(turn.take):
        wait_for(lambda: bool(turn._waiting))
        turn.take()  # at once
        assert turn.is_mine
        turn.give()
        assert not turn.is_mine


def test_a_turn_that_is_over_is_handed_to_who_waits_and_comes_back() -> None:
    turn, seen = Turn(length=0.0, patience=LONG), list[str]()
    turn.take()

    def other() -> None:
        with turn:
            seen.append("other")

    with beside(other):
        wait_for(lambda: bool(turn._waiting))
        turn.take()
        seen.append("own")
        assert turn.is_mine
        turn.give()
    assert seen == ["other", "own"]


def test_who_waits_longest_is_next() -> None:
    turn, seen = Turn(patience=LONG), list[int]()
    turn.take()

    def other(number: int) -> None:
        with turn:
            seen.append(number)

    with beside(lambda: other(1)):
        wait_for(lambda: len(turn._waiting) == 1)
        with beside(lambda: other(2)):
            wait_for(lambda: len(turn._waiting) == 2)
            turn.give()
    assert seen == [1, 2]


def test_who_ended_with_his_turn_has_lost_it() -> None:
    turn = Turn(length=0.0, patience=0.001)
    with beside(turn.take):
        pass
    turn.take()
    assert turn.is_mine
    assert not turn._waiting


def test_nobody_waits_for_ever_for_a_turn_that_is_not_over() -> None:
    turn, had = Turn(length=LONG, patience=0.001), list[bool]()
    turn.take()
    with beside(lambda: (turn.take(), had.append(turn.is_mine), turn.give())):
        pass
    assert had == [False]
    assert turn.is_mine, "whoever goes on without has none to give"
    assert not turn._waiting
    turn.give()


def test_who_waits_for_a_write_has_let_go() -> None:
    answer = Answer()
    try:
        TURN.take()
        with beside(lambda: (TURN.take(), answer.set_result([1]), TURN.give())):
            assert answer.result(LONG) == [1]
            assert not TURN.is_mine
    finally:
        TURN.give()


def test_who_asks_why_a_write_failed_has_let_go() -> None:
    answer = Answer()
    answer.set_exception(ValueError("no"))
    TURN.take()
    assert isinstance(answer.exception(), ValueError)
    assert not TURN.is_mine


@pytest.mark.parametrize("threads", [2, 5])
def test_there_is_one_turn_at_a_time(threads: int) -> None:
    turn, inside, most = Turn(length=0.0, patience=LONG), 0, 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for _ in range(50):
            turn.take()
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0)
            with lock:
                inside -= 1
        turn.give()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LONG)
    assert most == 1
    assert not turn._waiting


def test_a_turn_is_shorter_than_anybody_has_to_wait() -> None:
    assert turns.SLICE < turns.PATIENCE
