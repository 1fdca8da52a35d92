"""When a fleet that became large is given its second process."""

from __future__ import annotations

import pytest
from support.leases import Clock

from apiserver.model.keys import Key
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Put
from reconciler.commands import fleetsize
from reconciler.commands.fleetsize import FleetSize

SOMETHING = Key("configmaps", "abc", "default", "a")


def write(store: MemoryStore, number: int) -> None:
    for at in range(number):
        store.write(Put(SOMETHING, b'{"at":%d}' % at)).result()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """By which time passes; three writes are few."""
    found = Clock()
    monkeypatch.setattr(fleetsize, "_MUCH", 3)
    monkeypatch.setattr("time.monotonic", found)
    return found


@pytest.mark.usefixtures("clock")
def test_it_is_begun_in_a_moment_in_which_little_is_written() -> None:
    store = MemoryStore()
    size = FleetSize("auto", store)
    write(store, 10)
    assert size.is_busy()
    write(store, 4)
    assert size.is_busy()
    write(store, 3)
    assert not size.is_busy()


def test_it_is_not_waited_for_such_a_moment_for_ever(clock: Clock) -> None:
    store = MemoryStore()
    size = FleetSize("auto", store)
    for _ in range(3):
        write(store, 10)
        assert size.is_busy()
        clock.now += fleetsize._LONGEST / 3
    write(store, 10)
    assert not size.is_busy()


def test_a_fleet_that_was_small_meanwhile_is_given_that_time_again(clock: Clock) -> None:
    store = MemoryStore()
    size = FleetSize("auto", store)
    size.is_busy()
    clock.now += 10 * fleetsize._LONGEST
    write(store, 10)
    assert size.is_busy()
