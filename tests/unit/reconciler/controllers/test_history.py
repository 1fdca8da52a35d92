"""Past states go after the time that was asked for, and not before."""

from __future__ import annotations

import pytest

from apiserver.model.keys import Key
from apiserver.storage.protocol import Compacted, Put, Store
from reconciler.controllers.history import History

KEY = Key("configmaps", "c", "default", "a")


class Queue:
    """Notes the last appointment."""

    seconds = -1.0

    def add(self, key: Key) -> None:
        self.key = key

    def add_after(self, key: Key, seconds: float) -> None:
        self.seconds = seconds


def test_what_is_older_than_two_intervals_is_forgotten(store: Store) -> None:
    time = 1000.0
    history, queue = History(store, 60, lambda: time), Queue()
    history.queue = queue  # type: ignore[assignment]
    history.begin()
    first, second, third = (store.write(Put(KEY, b"%d" % n)).result()[0] for n in range(3))
    history.reconcile(queue.key)
    assert queue.seconds == 60
    [fourth] = store.write(Put(KEY, b"3")).result()
    time += 30
    history.reconcile(queue.key)  # before it is due: an object of every kind was shown anew
    assert (queue.seconds, len(store.changes(first))) == (30, 3)
    time += 30
    history.reconcile(queue.key)
    with pytest.raises(Compacted):
        store.changes(second)
    assert [change.revision for change in store.changes(third)] == [fourth]
    time += 60
    history.reconcile(queue.key)
    assert store.oldest() == fourth
