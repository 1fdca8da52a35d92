"""A controller goes on where it was, whenever its process ended: what it may not have finished it looks at again, and
nothing else.

A process is killed by dropping feed and manager without a word, between any two steps.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.countedstore import CountedStore

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Put, Store
from reconciler.controllers import agenda, checkpoints
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.feed import Feed
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.progress import SHOWN, Progress

ORDERS, GOODS, RECEIPTS = "orders", "goods", "receipts"
LONG = 3 * agenda.SOON


class Clock:
    """Wall-clock time, moved by hand."""

    def __init__(self) -> None:
        self.now = time.time()

    def time(self) -> float:
        return self.now


class Shop(Controller[Key]):
    """Each order wants goods with its number, then a receipt, perhaps not before some time; and may fail first."""

    name = "shop"
    resources = frozenset({ORDERS})

    def __init__(self, store: Any, clock: Clock, version: str, failing: set[str]) -> None:
        self._store, self._clock, self.version, self._failing = store, clock, version, failing
        self.begun = 0

    def begin(self) -> None:
        self.begun += 1

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is not None:
            yield entry.key

    def reconcile(self, key: Key) -> Any:
        if key.resource == RECEIPTS:
            return self._store.write(Put(key, self._goods(key)))
        order = orjson.loads(self._store.get(key).value)
        if key.name in self._failing:
            raise ValueError(key.name)
        wait = order["at"] - self._clock.now
        if wait > 0:
            self.queue.add_after(key, wait)
            return None
        self._store.write(Put(key._replace(resource=GOODS), b"%d" % order["number"])).result()
        self.queue.add(key._replace(resource=RECEIPTS))
        return None

    def _goods(self, key: Key) -> bytes:
        value: bytes = self._store.get(key._replace(resource=GOODS)).value
        return value


class Server:
    """A process that works on the store."""

    def __init__(self, store: Store, clock: Clock, version: str = "1", failing: set[str] | None = None) -> None:
        self.store = CountedStore(store)
        self.feed = Feed(self.store)  # type: ignore[arg-type]
        self.shop = Shop(self.store, clock, version, failing if failing is not None else set())
        self.manager = Manager("test", [self.shop], self.feed, CAREFUL)

    def settle(self) -> None:
        self.manager.settle()


def order(store: Store, name: str, number: int = 1, at: float = 0.0) -> Key:
    key = Key(ORDERS, "c", "", name)
    store.write(Put(key, orjson.dumps({"number": number, "at": at}))).result()
    return key


def appointments(store: Store) -> list[Any]:
    """The rows there are, after all that is being written."""
    store.write(Delete(Key("none", "", "", ""))).result()
    return store.scan_rows(Table.APPOINTMENTS)


def reached(store: Store, version: str = "1") -> int | None:
    return checkpoints.reached(store, checkpoints.name_of("shop", version))


def outcome(store: Store, resource: str) -> dict[str, int]:
    return {r.key.name: int(r.value) for r in store.scan(resource).records}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(agenda, "time", made)
    return made


def test_a_start_shows_nothing_where_the_log_reaches_back(store: Store, clock: Clock) -> None:
    for name in "abc":
        order(store, name)
    first = Server(store, clock)
    first.settle()
    assert first.store.rows == [ORDERS] * 3
    first.feed.save()
    last = order(store, "d")
    second = Server(store, clock)
    second.settle()
    assert (second.store.rows, second.shop.begun) == ([], 1)
    assert outcome(store, RECEIPTS).keys() == {"a", "b", "c", "d"}
    told = [c.key for c in store.changes(store.revision() - len(second.store.entries))]
    assert last in told
    assert Key(ORDERS, "c", "", "c") not in told


def test_nothing_new_is_no_write(store: Store, clock: Clock) -> None:
    order(store, "a")
    first = Server(store, clock)
    first.settle()
    first.feed.save()
    written = reached(store)
    second = Server(store, clock)
    second.settle()
    store.write = None  # type: ignore[assignment,method-assign]
    second.feed.save()
    assert reached(store) == written


def test_another_version_sees_everything_once(store: Store, clock: Clock) -> None:
    order(store, "a")
    first = Server(store, clock)
    first.settle()
    first.feed.save()
    second = Server(store, clock, "2")
    second.settle()
    assert second.store.rows == [ORDERS]
    second.feed.save()
    third = Server(store, clock, "2")
    third.settle()
    assert third.store.rows == []
    assert len(store.scan_rows(Table.CHECKPOINTS)) == 1, "the log is kept for no version that was"


def test_a_log_that_does_not_reach_back_shows_everything(store: Store, clock: Clock) -> None:
    first = Server(store, clock)
    first.settle()
    first.feed.save()
    order(store, "a")
    store.compact(0)
    second = Server(store, clock)
    second.settle()
    assert second.store.rows == [ORDERS]
    assert outcome(store, RECEIPTS) == {"a": 1}


def test_what_was_shown_and_is_not_done_is_shown_again(store: Store, clock: Clock) -> None:
    for name in "abc":
        order(store, name)
    first = Server(store, clock)
    first.manager.step()
    first.feed.save()
    assert reached(store) is None
    second = Server(store, clock)
    second.settle()
    assert second.store.rows == [ORDERS] * 3
    assert outcome(store, RECEIPTS).keys() == {"a", "b", "c"}


def test_a_checkpoint_passes_no_key_that_fails_until_that_stands_on_disk(store: Store, clock: Clock) -> None:
    failing = {"bad"}
    first = Server(store, clock, failing=failing)
    first.settle()
    before = store.revision()
    order(store, "bad")
    order(store, "good")
    first.settle()
    first.feed.save()
    assert reached(store) == before
    [item] = first.manager._queue.pending() - {(-1, "")}
    for _ in range(agenda._OFTEN):
        first.manager._handle(item, [], first.manager._queue.add)
    first.manager.settle()
    first.feed.save()
    assert reached(store) == store.revision()
    assert len(appointments(store)) == 1
    failing.clear()
    second = Server(store, clock)
    second.settle()
    assert outcome(store, RECEIPTS) == {"bad": 1, "good": 1}
    assert (second.store.rows, appointments(store)) == ([], [])


def test_an_appointment_is_one_row_and_outlives_the_process(store: Store, clock: Clock) -> None:
    first = Server(store, clock)
    first.settle()
    for number in range(3):
        order(store, "late", number, clock.now + LONG)
        first.settle()
    first.feed.save()
    assert reached(store) == store.revision()
    assert len(appointments(store)) == 1, "of three looks"
    second = Server(store, clock)
    second.settle()
    assert outcome(store, GOODS) == {}
    clock.now += LONG + 1
    third = Server(store, clock)
    third.settle()
    assert (outcome(store, RECEIPTS), third.store.rows) == ({"late": 2}, [])
    assert appointments(store) == []


def test_a_running_server_keeps_appointments_that_it_does_not_hold_in_memory(store: Store, clock: Clock) -> None:
    server = Server(store, clock)
    order(store, "late", 1, clock.now + LONG)
    server.settle()
    assert server.shop.queue.pending() == set()
    clock.now += LONG + 1
    server.settle()
    assert (outcome(store, RECEIPTS), appointments(store)) == ({"late": 1}, [])


def test_what_a_key_adds_counts_as_of_its_entry() -> None:
    progress = Progress()
    progress.told("a", 5)
    progress.told("b", 7)
    assert progress.low(9) == 4
    task = progress.taken("a")
    assert progress.low(9) == 4
    progress.told("c", task.revision)
    progress.told("a", 8)  # meanwhile
    progress.done(task)
    assert progress.low(9) == 4
    progress.done(progress.taken("c"))
    assert progress.low(9) == 6
    failed = progress.taken("b")
    progress.failed(failed)
    assert progress.low(9) == 6
    progress.done(progress.taken("b"))
    assert progress.low(9) == 7
    progress.done(progress.taken("a"))
    assert progress.low(9) == 9
    progress.told("shown", SHOWN)
    assert progress.low(9) < 0


NAMES = st.sampled_from("abcd")
EVENTS = st.one_of(
    st.tuples(st.just("order"), NAMES, st.integers(0, 9), st.sampled_from([0.0, 0.0, agenda.SOON / 2, LONG])),
    st.tuples(st.just("step"), st.integers(1, 4)),
    st.tuples(st.just("save")),
    st.tuples(st.just("kill")),
    st.tuples(st.just("version")),
    st.tuples(st.just("compact")),
    st.tuples(st.just("time"), st.sampled_from([1.0, agenda.SOON, LONG])),
    st.tuples(st.just("fails"), NAMES),
    st.tuples(st.just("recovers"), NAMES),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_whatever_happens_all_that_needs_work_gets_it(events: list[tuple[Any, ...]]) -> None:
    """After quiet every order has what it wants; and no start shows anything, unless it has to."""
    patch, clock = pytest.MonkeyPatch(), Clock()
    with tempfile.TemporaryDirectory() as name, patch.context() as patched:
        patched.setattr(agenda, "time", clock)
        store = open_store(Path(name), sync=False)
        failing: set[str] = set()
        version, wanted = 1, {}
        server = Server(store, clock, "1", failing)
        for what, *how in events:
            if what == "order":
                wanted[how[0]] = how[1]
                order(store, how[0], how[1], clock.now + how[2] if how[2] else 0.0)
            elif what == "step":
                for _ in range(how[0]):
                    server.manager.step()
            elif what == "save":
                server.manager._catch_up()
                server.feed.save()
            elif what in ("kill", "version"):
                version += what == "version"
                within = reached(store, str(version)) is not None
                server = Server(store, clock, str(version), failing)
                server.manager._catch_up()
                assert not (within and server.store.rows)
            elif what == "compact":
                store.compact(0)
            elif what == "time":
                clock.now += how[0]
            else:
                (failing.add if what == "fails" else failing.discard)(how[0])
        failing.clear()
        server.settle()
        server.feed.save()
        clock.now += 2 * LONG
        last = Server(store, clock, str(version), failing)
        last.settle()
        found = (outcome(store, GOODS), outcome(store, RECEIPTS))
        store.close()
        assert found == (wanted, wanted)


def test_what_can_do_nothing_is_looked_at_by_each_start_until_it_can(store: Store, clock: Clock) -> None:
    class Holding(Shop):
        waits = True

        def reconcile(self, key: Key) -> Any:
            self.looked = getattr(self, "looked", 0) + 1
            return self.queue.hold(key) if self.waits else None  # type: ignore[func-returns-value]

    order(store, "a")

    def start(waits: bool) -> Holding:
        shop = Holding(store, clock, "1", set())
        shop.waits = waits
        feed = Feed(store)
        Manager("test", [shop], feed, CAREFUL).settle()
        feed.save()
        return shop

    assert [start(waits).looked for waits in (True, True, False)] == [1, 1, 1]
    assert appointments(store) == []
    assert not hasattr(start(False), "looked")
