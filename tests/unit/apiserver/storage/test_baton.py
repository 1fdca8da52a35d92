"""The baton of the threads that work with the store: an order, and never a reason to stand still."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from conftest import Eventually

from apiserver.storage import baton as batons
from apiserver.storage.baton import BATON, Baton, StoreAnswer

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


def says(baton: Baton, seen: list[str], name: str) -> Callable[[], None]:
    """What says a name once it has the baton."""

    def work() -> None:
        with baton:
            seen.append(name)

    return work


def test_who_waits_has_it_when_it_is_given(eventually: Eventually) -> None:
    baton = Baton(patience=LONG)
    seen: list[str] = []
    baton.take()
    with beside(says(baton, seen, "other")):
        eventually(lambda: bool(baton._waiting))
        seen.append("own")
        baton.give()
    assert seen == ["own", "other"]


def test_the_baton_goes_on_until_it_is_over_and_somebody_waits(eventually: Eventually) -> None:
    baton = Baton(length=LONG, patience=LONG)
    baton.take()
    with beside(baton.take):
        eventually(lambda: bool(baton._waiting))
        baton.take()  # at once
        assert baton.is_mine
        baton.give()
        assert not baton.is_mine


def test_the_baton_that_is_over_is_handed_to_who_waits_and_comes_back(eventually: Eventually) -> None:
    baton, seen = Baton(length=0.0, patience=LONG), list[str]()
    baton.take()
    with beside(says(baton, seen, "other")):
        eventually(lambda: bool(baton._waiting))
        baton.take()
        seen.append("own")
        assert baton.is_mine
        baton.give()
    assert seen == ["other", "own"]


def test_who_waits_longest_is_next(eventually: Eventually) -> None:
    baton, seen = Baton(patience=LONG), list[str]()
    baton.take()
    with beside(says(baton, seen, "first")):
        eventually(lambda: len(baton._waiting) == 1)
        with beside(says(baton, seen, "second")):
            eventually(lambda: len(baton._waiting) == 2)
            baton.give()
    assert seen == ["first", "second"]


def test_who_ended_with_it_has_lost_it() -> None:
    baton = Baton(length=0.0, patience=0.001)
    with beside(baton.take):
        pass
    baton.take()
    assert baton.is_mine
    assert not baton._waiting


def test_nobody_waits_for_ever_for_the_baton_that_is_not_over() -> None:
    baton, had = Baton(length=LONG, patience=0.001), list[bool]()
    baton.take()
    with beside(lambda: (baton.take(), had.append(baton.is_mine), baton.give())):
        pass
    assert had == [False]
    assert baton.is_mine, "whoever goes on without has none to give"
    assert not baton._waiting
    baton.give()


def test_who_waits_for_a_write_has_let_go() -> None:
    answer = StoreAnswer()
    try:
        BATON.take()
        with beside(lambda: (BATON.take(), answer.set_result([1]), BATON.give())):
            assert answer.result(LONG) == [1]
            assert not BATON.is_mine
    finally:
        BATON.give()


def test_who_asks_why_a_write_failed_has_let_go() -> None:
    answer = StoreAnswer()
    answer.set_exception(ValueError("no"))
    BATON.take()
    assert isinstance(answer.exception(), ValueError)
    assert not BATON.is_mine


@pytest.mark.parametrize("threads", [2, 5])
def test_there_is_one_baton_at_a_time(threads: int) -> None:
    baton, inside, most = Baton(length=0.0, patience=LONG), 0, 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for _ in range(50):
            baton.take()
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0)
            with lock:
                inside -= 1
        baton.give()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LONG)
    assert most == 1
    assert not baton._waiting


def test_the_baton_is_shorter_than_anybody_has_to_wait() -> None:
    assert batons.SLICE < batons.PATIENCE
