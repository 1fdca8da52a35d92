"""Writes of several keys in one transaction: who goes with whom, and what becomes of the others where one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import pytest

from apiserver.model.keys import Key
from apiserver.storage.protocol import Check, Conflict, Op, Put, Store
from reconciler.controllers import manager as manager_module
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.feed import Feed
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.together import Together


def wanted(name: str) -> Key:
    return Key("wanted", "c", "", name)


def made(name: str) -> Key:
    return Key("made", "c", "", name)


class Making(Controller[Key]):
    """Makes what is wanted; `never`: of this one a condition does not hold."""

    name = "making"
    resources = frozenset({"wanted"})

    def __init__(self, store: Store, most: int) -> None:
        self._store, self.together = store, Together[Key](store, most)
        self.never = ""
        self.looks: list[str] = []

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        self.looks.append(key.name)
        ops: list[Op] = [Put(made(key.name), b"{}")]
        if key.name == self.never:
            ops.append(Check(key, 1))
        try:
            return self.together.write(key, ops)
        finally:
            self.together.looked_at(key)

    def hand_over(self) -> None:
        self.together.hand_over()


@pytest.fixture
def writes(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was made by each transaction."""
    found: list[list[str]] = []
    write = store.write

    def noted(*ops: Op) -> Future[list[int]]:
        names = [op.key.name for op in ops if isinstance(op, Put) and op.key.resource == "made"]
        found.extend([names] if names else [])
        return write(*ops)

    monkeypatch.setattr(store, "write", noted)
    return found


def managed(store: Store, controller: Controller[Key], names: Iterable[str]) -> Manager:
    manager = Manager("test", [controller], Feed(store), CAREFUL)
    manager.settle()
    for name in names:
        store.write(Put(wanted(name), b"{}")).result()
    return manager


def test_so_many_go_together_and_the_rest_when_it_is_waited_for(store: Store, writes: list[list[str]]) -> None:
    managed(store, Making(store, 3), "abcdefgh").settle()
    assert writes == [["a", "b", "c"], ["d", "e", "f"], ["g", "h"]]
    assert [record.key for record in store.scan("made").records] == [made(name) for name in "abcdefgh"]


def test_what_was_gathered_goes_although_the_last_to_be_done_was_to_look_for_appointments(
    store: Store, writes: list[list[str]], eventually: Callable[..., Any]
) -> None:
    """Which a manager does now and then, whatever else there is."""

    class Last(Making):
        def reconcile(self, key: Key) -> Future[list[int]] | None:
            if key.name == "b":
                manager._queue.add(manager_module._LOAD)
            return super().reconcile(key)

    manager = managed(store, Last(store, 10), "ab")
    manager.start()
    try:
        eventually(lambda: writes == [["a", "b"]])
    finally:
        manager.stop()


def test_each_resolves_to_what_was_written_of_all(store: Store) -> None:
    together = Together[str](store, 10)
    both = [together.write(name, [Put(made(name), b"{}")]) for name in "ab"]
    assert not any(each.done() for each in both)
    before = store.revision()
    together.hand_over()
    together.hand_over()
    assert [each.result() for each in both] == [[before + 1, before + 2]] * 2


def test_one_that_cannot_be_written_keeps_no_other(store: Store, writes: list[list[str]]) -> None:
    making = Making(store, 3)
    making.never = "b"
    manager = managed(store, making, "abcd")
    for _ in range(12):
        manager.step()
    assert [record.key.name for record in store.scan("made").records] == ["a", "c", "d"]
    assert writes[0] == ["a", "b", "c"]
    assert all(len(each) == 1 or each == ["d"] for each in writes[1:]), "each by itself"


def test_who_was_written_by_himself_goes_with_others_again(store: Store, writes: list[list[str]]) -> None:
    together = Together[str](store, 2)
    failed = [together.write(name, [Put(made(name), b"{}", 7)]) for name in "ab"]
    for each in failed:
        with pytest.raises(Conflict):
            each.result()
    together.write("a", [Put(made("a"), b"{}")]).result()
    together.looked_at("a")
    again = [together.write(name, [Put(made(name), b"{}")]) for name in "ac"]
    assert [each.result() for each in again]
    assert writes == [["a", "b"], ["a"], ["a", "c"]]


def test_what_weighs_much_goes_by_itself(store: Store, writes: list[list[str]]) -> None:
    together = Together[str](store, 10)
    for name, weight in (("a", 4), ("b", 4), ("c", 4), ("d", 100), ("e", 10), ("f", 1)):
        together.write(name, [Put(made(name), b"{}")], weight)
    assert writes == [["a", "b"], ["c"], ["d"], ["e"]]
    together.hand_over()
    assert writes[4:] == [["f"]]


def test_whoever_waits_learns_that_the_store_is_closed(store: Store) -> None:
    together = Together[str](store, 10)
    both = [together.write(name, [Put(made(name), b"{}")]) for name in "ab"]
    store.close()
    together.hand_over()
    for each in both:
        with pytest.raises(RuntimeError, match="closed"):
            each.result()
