"""One reader of the log for all controllers: what is read, what is decoded, who is told of what and in which order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from support.countedstore import CountedStore
from support.following import Following

from apiserver.model.keys import Internal, Key
from apiserver.storage.protocol import Delete, Put, Store
from reconciler.controllers import entry as entries
from reconciler.controllers import feed as feeds
from reconciler.controllers.controller import EVERYTHING, NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.feed import Feed
from reconciler.controllers.manager import CAREFUL, Manager


class Recorder(Controller[Key]):
    """Notes what it is told; decodes what it is told of if it is to."""

    def __init__(self, resources: Iterable[str], name: str = "recorder", *, decodes: bool = True) -> None:
        self.name, self.resources, self._decodes = name, frozenset(resources), decodes
        self.told: list[tuple[str, str]] = []
        self.reconciled: list[str] = []
        self.steps: list[str] = []

    def begin(self) -> None:
        self.steps.append("begin")

    def complete(self) -> None:
        self.steps.append("complete")

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        self.told.append((entry.key.resource, entry.key.name))
        if self._decodes:
            assert entry.obj or entry.before
        yield entry.key

    def reconcile(self, key: Key) -> None:
        self.reconciled.append(key.name)


def put(store: Store, resource: str, name: str, cluster: str = "c") -> None:
    store.write(Put(Key(resource, cluster, "", name), b'{"metadata":{"name":"%s"}}' % name.encode())).result()


@pytest.fixture
def counting(store: Store) -> CountedStore:
    return CountedStore(store)


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was decoded."""
    found: list[bytes] = []

    def decode(value: bytes, plain: Callable[[bytes], Any] = entries.decode) -> Any:
        found.append(value)
        return plain(value)

    monkeypatch.setattr(entries, "decode", decode)
    return found


def managed(store: Any, controllers: Sequence[Controller[Any]]) -> tuple[Feed, list[Manager]]:
    """A manager each."""
    feed = Feed(store)
    return feed, [Manager(each.name, [each], feed, CAREFUL) for each in controllers]


def test_each_entry_is_read_once_and_decoded_once_and_not_where_nobody_asked(
    store: Store, counting: CountedStore, decodes: list[bytes]
) -> None:
    asking = [Recorder({"a"}, f"asks-{n}") for n in range(10)]
    glancing = [Recorder(EVERYTHING, f"glances-{n}", decodes=False) for n in range(5)]
    _, managers = managed(counting, [*asking, *glancing])
    for manager in managers:
        manager.settle()
    for number in range(20):
        put(store, "a", f"a{number}")
        put(store, "b", f"b{number}")
    for manager in managers:
        manager.settle()
    assert len(counting.entries) == 40, "by 15 controllers of 15 managers"
    assert len(decodes) == 20, "once each, and nothing of b"
    assert all(len(each.told) == 20 for each in asking)
    assert all(len(each.told) == 40 for each in glancing)


def test_a_start_shows_each_resource_once_to_all_who_ask_the_fewest_first(
    store: Store, counting: CountedStore, decodes: list[bytes]
) -> None:
    for number in range(30):
        put(store, "many", f"m{number}")
    put(store, "few", "f")
    put(store, "unasked", "u")
    both = [Recorder({"many", "few"}, name) for name in ("one", "two")]
    for manager in managed(counting, both)[1]:
        manager.settle()
    assert counting.rows == ["few"] + ["many"] * 30
    assert (counting.entries, len(decodes)) == ([], 31)
    assert [each.steps for each in both] == [["begin", "complete"]] * 2
    assert both[0].told[0] == ("few", "f")


def test_resources_are_asked_for_with_or_without_identity(store: Store) -> None:
    plain, any_, all_ = Recorder({"pods"}), Recorder({"pods:*"}, "any"), Recorder(EVERYTHING, "all")
    following = Following.of(store, plain, any_, all_)
    following.settle()
    for resource in ("pods", "pods:abc", "podsets", "~workspaces"):
        put(store, resource, "x")
    following.settle()
    assert [r for r, _ in plain.told] == ["pods"]
    assert [r for r, _ in any_.told] == ["pods", "pods:abc"]
    assert [r for r, _ in all_.told] == ["pods", "pods:abc", "podsets"]


class Ends(Recorder):
    """Notes which objects it is told to have gone with their workspace."""

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.value is None:
            self.told.append((entry.key.name, "with it" if entry.with_workspace else "alone"))
        return ()


def test_what_goes_with_its_workspace_is_told_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends(EVERYTHING)
    following = Following.of(store, ends)
    for name in "abc":
        put(store, "a", name, cluster="mine")
    put(store, "a", "other", cluster="other")
    following.settle()
    place = Key(Internal.WORKSPACE, "mine", "", "")
    store.write(Put(place, b"root:mine\nstored")).result()
    store.write(Delete(Key("a", "mine", "", "a"))).result()
    store.write(*(Delete(Key("a", "mine", "", name)) for name in "bc"), Delete(place)).result()
    store.write(Delete(Key("a", "other", "", "other"))).result()
    store.write(Put(place, b"root:mine\nstored")).result()  # it came again
    put(store, "a", "d", cluster="mine")
    store.write(Delete(Key("a", "mine", "", "d"))).result()
    following.settle()
    gone = [("a", "with it"), ("b", "with it"), ("c", "with it"), ("other", "alone"), ("d", "alone")]
    assert ends.told == gone
    monkeypatch.setattr(feeds, "_PAGE", 1)
    late = Ends(EVERYTHING)
    late.shown = NO_RESOURCES
    again = Following.of(store, late)
    again.settle()
    store.write(Delete(place), Delete(Key("a", "mine", "", "d"))).result()
    put(store, "a", "e", cluster="mine")
    store.write(Delete(Key("a", "mine", "", "e")), Delete(place)).result()
    again.settle()
    assert late.told == [("e", "alone")], "where the page does not tell"


def test_who_looks_at_one_workspace_is_not_told_of_what_goes_with_it(store: Store) -> None:
    asking = [Recorder(EVERYTHING | {Internal.WORKSPACE}, name) for name in ("all", "inside", "some")]
    asking[1].beyond, asking[2].beyond = NO_RESOURCES, frozenset({"b", "c:*"})
    following = Following.of(store, *asking)
    place = Key(Internal.WORKSPACE, "mine", "", "")
    for resource in ("a", "b", "c:1"):
        put(store, resource, "x", cluster="mine")
        put(store, resource, "x", cluster="other")
    store.write(Put(place, b"root:mine\nstored")).result()
    following.settle()
    for each in asking:
        each.told.clear()
    every = [Delete(Key(resource, cluster, "", "x")) for cluster in ("mine", "other") for resource in ("a", "b", "c:1")]
    store.write(*every, Delete(place)).result()
    following.settle()
    told = [[resource for resource, _ in each.told] for each in asking]
    other, end = ["a", "b", "c:1"], [Internal.WORKSPACE]
    assert told == [["a", "b", "c:1", *other, *end], [*other, *end], ["b", "c:1", *other, *end]]


def test_what_need_not_be_shown_is_not_read(store: Store, counting: CountedStore) -> None:
    put(store, "a", "before")
    blind = Recorder({"a"})
    blind.shown = NO_RESOURCES
    [manager] = managed(counting, [blind])[1]
    manager.settle()
    put(store, "a", "after")
    manager.settle()
    assert (counting.rows, blind.told, blind.steps) == ([], [("a", "after")], ["begin", "complete"])


def test_where_the_log_is_gone_everything_is_shown_anew(store: Store) -> None:
    recorder = Recorder({"a"})
    following = Following.of(store, recorder)
    put(store, "a", "kept")
    put(store, "a", "lost")
    following.settle()
    recorder.told.clear()
    store.write(Delete(Key("a", "c", "", "lost"))).result()
    put(store, "a", "new")
    store.compact(0)
    following.settle()
    assert recorder.told == [("a", "kept"), ("a", "new")]
    assert recorder.steps == ["begin", "complete"] * 2


def test_what_is_shown_is_never_older_than_what_was_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that changes, and one that goes, while others are shown."""
    monkeypatch.setattr(feeds, "_PAGE", 1)
    for name in ("a", "b", "c"):
        put(store, "x", name)

    class Disturbed(Recorder):
        def keys_of(self, entry: Entry) -> Iterable[Key]:
            if entry.shown and entry.key.name == "a":
                store.write(Put(Key("x", "c", "", "b"), b'{"metadata":{"name":"newer"}}')).result()
                store.write(Delete(Key("x", "c", "", "c"))).result()
            self.states = getattr(self, "states", {})
            self.states[entry.key.name] = entry.value
            return super().keys_of(entry)

    recorder = Disturbed({"x"})
    Following.of(store, recorder).settle()
    assert recorder.states["b"] == b'{"metadata":{"name":"newer"}}'
    assert recorder.states["c"] is None
    assert recorder.told.count(("x", "c")) == 1, "its end alone"


def test_one_that_cannot_read_an_object_keeps_nobody_from_it(store: Store) -> None:
    class Broken(Recorder):
        def keys_of(self, entry: Entry) -> Iterable[Key]:
            raise ValueError

    broken, sound = Broken({"a"}, "broken"), Recorder({"a"}, "sound")
    following = Following.of(store, broken, sound)
    put(store, "a", "x")
    following.settle()
    put(store, "a", "y")
    following.settle()
    assert (sound.reconciled, broken.reconciled) == (["x", "y"], [])


def test_a_controller_never_decides_on_less_than_what_was_written(store: Store) -> None:
    """Its own writes included: what it wrote was told before the next key."""

    class Writer(Recorder):
        def reconcile(self, key: Key) -> None:
            super().reconcile(key)
            if key.resource == "a":
                assert all(("b", name) in self.told for name in self.reconciled[:-1] if name.startswith("a"))
                put(store, "b", key.name)

    writer = Writer({"a", "b"})
    for number in range(5):
        put(store, "a", f"a{number}")
    Following.of(store, writer).settle()
    assert len(writer.told) == 10


def test_others_are_told_while_much_is_shown_to_one(store: Store, eventually: Any) -> None:
    """Who waits for housekeeping's look at the store's whole content is housekeeping alone."""
    for number in range(20):
        put(store, "many", f"m{number}")
    held, goes_on = threading.Event(), threading.Event()

    class Slow(Recorder):
        def keys_of(self, entry: Entry) -> Iterable[Key]:
            return super().keys_of(entry)

    slow, quick = Slow({"many"}, "slow"), Recorder({"a"}, "quick")
    feed = Feed(store)
    busy = Manager("slow", [slow], feed, CAREFUL, busy=lambda: not goes_on.is_set())
    prompt = Manager("quick", [quick], feed)
    for each in (busy, prompt):
        each.start()
    feed.start()
    put(store, "a", "x")
    eventually(lambda: quick.reconciled == ["x"])
    assert (slow.told, slow.reconciled, held.is_set()) == ([], [], False)
    goes_on.set()
    eventually(lambda: len(slow.reconciled) == 20)
    eventually(lambda: busy.idle and prompt.idle)
    feed.stop()
    assert busy.stop(30)
    assert prompt.stop(30)


def test_the_thread_tells_without_being_asked_and_after_its_end_nothing(store: Store, eventually: Any) -> None:
    recorder = Recorder({"a"})
    following = Following.of(store, recorder)
    following.start()
    put(store, "a", "x")
    eventually(lambda: recorder.reconciled == ["x"])
    following.stop()
    put(store, "a", "y")
    following.manager.settle()
    assert recorder.told == [("a", "x")]
