"""When a fleet that became large is given its second process."""

from __future__ import annotations

import pytest

from apiserver.model.keys import Key
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Put
from reconciler.commands import fleetsize
from reconciler.commands.fleetsize import FleetSize

SOMETHING = Key("configmaps", "abc", "default", "a")


def write(store: MemoryStore, number: int) -> None:
    for at in range(number):
        store.write(Put(SOMETHING, b'{"at":%d}' % at)).result()


def test_it_is_begun_in_a_moment_in_which_little_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleetsize, "_MUCH", 3)
    store = MemoryStore()
    size = FleetSize("auto", store)
    write(store, 10)
    assert size.is_busy()
    write(store, 4)
    assert size.is_busy()
    write(store, 3)
    assert not size.is_busy()


def test_it_is_not_waited_for_such_a_moment_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleetsize, "_MUCH", 3)
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    store = MemoryStore()
    size = FleetSize("auto", store)
    for _ in range(3):
        write(store, 10)
        assert size.is_busy()
        now += fleetsize._LONGEST / 3
    write(store, 10)
    assert not size.is_busy()


def test_a_fleet_that_was_small_meanwhile_is_given_that_time_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleetsize, "_MUCH", 3)
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    store = MemoryStore()
    size = FleetSize("auto", store)
    size.is_busy()
    now += 10 * fleetsize._LONGEST
    write(store, 10)
    assert size.is_busy()
