"""What is written down of looks at the fleet's repository: nothing as long as all is well and nobody asks."""

from __future__ import annotations

import pytest

from apiserver.model.commits import own
from apiserver.registry import looks, tree
from apiserver.registry.looks import Away, Looked, WaitingHead
from apiserver.registry.tree import FleetRecord
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Op
from reconciler.commands.looking import Looking

ONE, TWO = "1" * 40, "2" * 40


class Now:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


class CountedStore(MemoryStore):
    """`writes`: how many there were."""

    writes = 0

    def write(self, *ops: Op):  # type: ignore[no-untyped-def]
        self.writes += 1
        return super().write(*ops)


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def store() -> CountedStore:
    made = CountedStore()
    made.write(tree.put_fleet(FleetRecord(loaded=True, commit=own(ONE)))).result()
    made.writes = 0
    return made


@pytest.fixture
def looking(store: CountedStore, now: Now) -> Looking:
    made = Looking(now)
    made.attach(store)
    return made


def test_where_all_is_well_nothing_is_written(looking: Looking, store: CountedStore) -> None:
    for _ in range(3):
        looking.answers()
        looking.planned(10.0)
        looking.seen(ONE)
        looking.served()
    assert store.writes == 0


def test_since_when_it_does_not_answer_and_when_it_is_asked_again(
    looking: Looking, store: CountedStore, now: Now
) -> None:
    looking.failed()
    looking.planned(15.0)
    now.at += 15
    looking.failed()
    looking.planned(22.0)
    assert looks.away(store) == Away(1000.0, 1037.0)
    looking.answers()
    assert looks.away(store) is None


def test_what_was_met_before_the_store_was_open_is_written_then(store: CountedStore, now: Now) -> None:
    looking = Looking(now)
    looking.failed()
    looking.attach(store)
    assert looks.away(store) == Away(1000.0, 1000.0)


def test_what_a_former_self_wrote_is_not_believed_but_for_what_waits(store: CountedStore, now: Now) -> None:
    store.write(looks.put_away(Away(1.0, 2.0)), looks.put_waiting(WaitingHead(TWO, 3.0))).result()
    looking = Looking(now)
    looking.attach(store)
    assert looks.away(store) is None
    looking.seen(TWO)
    looking.waits()
    assert looks.waiting(store) == WaitingHead(TWO, 3.0), "since then"
    looking.served()
    assert looks.waiting(store) is None


def test_a_head_that_is_not_served_waits_since_it_was_seen(looking: Looking, store: CountedStore, now: Now) -> None:
    looking.seen(TWO)
    now.at += 1
    looking.waits(long=True)
    assert looks.waiting(store) is None, "a load takes a moment"
    now.at += 9
    looking.waits(long=True)
    assert looks.waiting(store) == WaitingHead(TWO, 1000.0)
    writes = store.writes
    looking.waits()
    assert store.writes == writes


def test_who_asks_is_told_of_a_look_that_began_behind_the_question(
    looking: Looking, store: CountedStore, now: Now
) -> None:
    looking.ask()
    assert not looking.is_asked(999.0)
    now.at = 1002.0
    looking.ask()
    assert looking.is_asked(1001.0), "the first who asked is not put off by the second"
    looking.answer(1001.0, TWO, "why")
    assert looks.looked(store) == Looked(1001.0, TWO, ONE, "why")
    assert not looking.is_asked(1001.0), "the second is still to be told"
    assert looking.is_asked(1002.0)
    looking.answer(1002.0, ONE, "")
    assert not looking.is_asked(2000.0)
