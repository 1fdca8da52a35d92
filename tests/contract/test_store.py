"""What every store promises (apiserver/storage/protocol.py)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.declared import Declared
from apiserver.storage.protocol import (
    NEVER,
    Check,
    CheckNumber,
    Compacted,
    Conflict,
    Delete,
    Put,
    PutRow,
    Record,
    Row,
    Store,
    TooMany,
)

ROWS = Table.KEPT_SECRETS


def cm(name: str, namespace: str = "default", cluster: str = "root") -> Key:
    return Key("configmaps", cluster, namespace, name)


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.get(cm("a")) is None
    assert store.get_many([cm("a"), cm("b")]) == [None, None]
    assert store.scan("configmaps") == ([], store.revision(), None, 0)
    assert store.scan("configmaps", "root", "default").records == []
    assert store.count("configmaps") == 0
    assert store.oldest() == store.revision()
    assert store.changes(store.revision()) == []
    assert store.marked() == 0


def test_it_tells_which_resources_were_ever_written_to(store: Store) -> None:
    assert store.resources() == []
    key = Key("deployments.apps:abc", "root", "default", "a")
    store.write(Put(key, b"{}"), Put(cm("a"), b"{}"), Put(Key("~own", "", "", ""), b"{}")).result()
    store.write(Delete(key)).result()
    assert store.resources() == ["configmaps", "deployments.apps:abc", "~own"]
    assert store.resources("root") == ["configmaps"]
    assert store.resources("elsewhere") == []


def test_it_tells_the_keys_of_a_workspace(store: Store) -> None:
    here = [
        cm("a"),
        cm("b", ""),
        cm("c", "z"),
        Key("deployments.apps:abc", "root", "default", "a"),
        Key("~own", "root", "", ""),
    ]
    others = [cm("a", cluster="roo"), cm("a", cluster="root0"), Key("pods", "", "", "root"), Key("pods", "z", "", "")]
    store.write(*(Put(key, b"{}") for key in [*here, *others])).result()
    assert store.keys("root") == sorted(here)
    assert store.keys("elsewhere") == []
    store.write(*(Delete(key) for key in here[1:])).result()
    with store.view() as view:
        store.write(Delete(here[0])).result()
        assert view.keys("root") == [here[0]]
    assert store.keys("root") == []


def test_revisions_start_at_the_time_and_never_go_back(opened: Callable[..., Store]) -> None:
    store = opened()
    assert abs(store.revision() / 1e6 - time.time()) < 60
    [written] = store.write(Put(cm("a"), b"1")).result()
    store.close()
    store = opened(start=5)
    assert store.revision() == written
    store.close()
    store = opened(start=written + 1000)
    assert store.revision() == written + 1000
    assert store.write(Put(cm("a"), b"2")).result() == [written + 1001]
    assert [c.revision for c in store.changes(written)] == [written + 1001]


def test_a_new_store_starts_at_the_revision_asked_for(opened: Callable[..., Store]) -> None:
    ahead = 2**52
    store = opened(start=ahead)
    assert store.revision() == store.oldest() == ahead


def test_a_block_is_consecutive(store: Store) -> None:
    start = store.revision()
    store.write(Put(cm("c"), b"c0")).result()
    got = store.write(
        Put(cm("a"), b"a1"), Check(cm("c"), start + 1), Put(cm("b"), b"b1"), Delete(cm("x")), Delete(cm("c"))
    ).result()
    assert got == [start + 2, 0, start + 3, 0, start + 4]
    assert store.revision() == start + 4
    assert store.get(cm("a")) == Record(cm("a"), start + 2, b"a1", b"")
    assert store.get_many([cm("c"), cm("b")]) == [None, Record(cm("b"), start + 3, b"b1", b"")]
    assert [(c.revision, c.key.name, c.value, c.previous, c.previous_revision) for c in store.changes(start)] == [
        (start + 1, "c", b"c0", None, 0),
        (start + 2, "a", b"a1", None, 0),
        (start + 3, "b", b"b1", None, 0),
        (start + 4, "c", None, b"c0", start + 1),
    ]


def test_a_write_of_the_same_value_is_a_write(store: Store) -> None:
    first, second = (store.write(Put(cm("a"), b"same")).result()[0] for _ in range(2))
    assert second == first + 1
    assert store.changes(first)[0].previous == b"same"


def test_a_write_of_nothing_takes_no_revision(store: Store) -> None:
    start = store.revision()
    assert store.write().result() == []
    assert store.write(Delete(cm("a"))).result() == [0]
    assert store.write(Check(cm("a"), NEVER)).result() == [0]
    assert store.revision() == start


def test_a_failed_precondition_writes_nothing(store: Store) -> None:
    [at] = store.write(Put(cm("a"), b"1")).result()
    for ops, revision in [
        ((Put(cm("b"), b"x"), Put(cm("a"), b"x", expect=NEVER)), at),
        ((Put(cm("b"), b"x"), Put(cm("a"), b"x", expect=at - 1)), at),
        ((Put(cm("b"), b"x"), Delete(cm("a"), expect=at + 1)), at),
        ((Put(cm("b"), b"x"), Delete(cm("z"), expect=at)), 0),
        ((Put(cm("b"), b"x"), Check(cm("a"), NEVER)), at),
        ((Put(cm("b"), b"x"), Check(cm("z"), at)), 0),
    ]:
        with pytest.raises(Conflict) as raised:
            store.write(*ops).result()
        assert (raised.value.revision, raised.value.key) == (revision, ops[1].key)
    assert store.revision() == at
    assert store.get(cm("b")) is None


def test_ops_of_one_write_see_each_other(store: Store) -> None:
    start = store.revision()
    assert store.write(
        Put(cm("a"), b"1", expect=NEVER), Put(cm("a"), b"2", expect=start + 1), Delete(cm("a"), expect=start + 2)
    ).result() == [start + 1, start + 2, start + 3]
    assert [(c.value, c.previous) for c in store.changes(start)] == [(b"1", None), (b"2", b"1"), (None, b"2")]
    with pytest.raises(Conflict):
        store.write(Put(cm("a"), b"1"), Put(cm("a"), b"2", expect=NEVER)).result()


def test_a_conflict_does_not_disturb_the_writes_beside_it(store: Store) -> None:
    [at] = store.write(Put(cm("taken"), b"1")).result()
    answers = []
    for number in range(300):
        answers.append(store.write(Put(cm(f"good-{number}"), b"x"), Put(cm(f"also-{number}"), b"x")))
        answers.append(store.write(Put(cm(f"bad-{number}"), b"x"), Put(cm("taken"), b"x", expect=NEVER)))
    revisions = []
    for good, bad in zip(answers[::2], answers[1::2], strict=True):
        revisions += good.result()
        assert isinstance(bad.exception(), Conflict)
    assert revisions == list(range(at + 1, at + 601))
    assert store.count("configmaps") == 601
    assert not [r for r in store.scan("configmaps").records if r.key.name.startswith("bad")]


def test_what_cannot_be_stored_is_refused_and_hurts_nobody(store: Store) -> None:
    answers = [
        store.write(Put(cm("before"), b"x")),
        store.write(Put(cm("ok"), b"x"), Put(cm("n" * 600), b"x")),
        store.write(Put(cm("a\0b"), b"x")),
        store.write(Put(cm("\ud800"), b"x")),
        store.write(Put(cm("a"), b"x", stamp=b"s" * 255)),
        store.write(Put(Key("", "root", "", "a"), b"x")),
        store.write(Put(cm("after"), b"x")),
    ]
    assert [type(answer.exception()) for answer in answers] == [type(None), *[ValueError] * 5, type(None)]
    assert [r.key.name for r in store.scan("configmaps").records] == ["after", "before"]


def test_only_one_of_many_writers_wins(store: Store) -> None:
    [at] = store.write(Put(cm("a"), b"0")).result()
    barrier, won = threading.Barrier(8), []

    def write(number: int) -> None:
        barrier.wait()
        if store.write(Put(cm("a"), b"%d" % number, expect=at)).exception() is None:
            won.append(number)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [winner] = won
    record = store.get(cm("a"))
    assert record is not None and record.value == b"%d" % winner


def test_stamps_stand_beside_values(store: Store) -> None:
    start = store.revision()
    store.write(Put(cm("a"), b"1", stamp=b"v1"), Put(cm("a"), b"2", stamp=b"v2"), Delete(cm("a"))).result()
    assert [(c.value, c.previous, c.stamp) for c in store.changes(start)] == [
        (b"1", None, b"v1"),
        (b"2", b"1", b"v2"),
        (None, b"2", b"v2"),
    ]
    store.write(Put(cm("b"), b"", stamp=b"s" * 254)).result()
    record = store.get(cm("b"))
    assert record is not None and (record.value, record.stamp) == (b"", b"s" * 254)
    assert store.scan("configmaps").records == store.scan("configmaps", "root", "default").records == [record]


@pytest.fixture
def filled(store: Store) -> Store:
    keys = [
        cm("a"), cm("b"), cm("a", "default2"), cm("a", "other"), cm("a", "default", "root2"), cm("z", "", "a"),
        Key("configmaps.x.io", "root", "default", "not-one"), Key("secrets", "root", "default", "a"),
    ]  # fmt: skip
    store.write(*(Put(k, k.name.encode()) for k in reversed(keys))).result()
    return store


def test_scans_go_in_order_and_keep_to_their_range(filled: Store) -> None:
    def found(*where: str | None) -> list[tuple[str, str, str]]:
        return [r.key[1:] for r in filled.scan("configmaps", *where).records]

    root = [("root", "default", "a"), ("root", "default", "b"), ("root", "default2", "a"), ("root", "other", "a")]
    assert found() == [("a", "", "z"), *root, ("root2", "default", "a")]
    assert found("root") == root
    assert found("root", "default") == root[:2]
    assert found("root", "def") == found("roo") == found("root", "") == []
    assert found("a", "") == [("a", "", "z")]
    assert filled.count("configmaps") == 6
    assert filled.count("configmaps", "root") == 4
    assert filled.count("configmaps", "root", "default") == 2


def test_pages_show_one_snapshot(filled: Store) -> None:
    whole = filled.scan("configmaps")
    page = filled.scan("configmaps", limit=2)
    assert (page.records, page.remaining, page.more) == (whole.records[:2], 4, whole.records[1].key)
    filled.write(
        Delete(cm("a", "other")), Put(cm("aa"), b"new"), Put(cm("b"), b"other"), Delete(cm("a", "default", "root2"))
    ).result()
    rest = []
    while page.more:
        page = filled.scan("configmaps", after=page.more, limit=2, at=whole.revision)
        assert page.revision == whole.revision
        rest += page.records
        assert page.remaining == 4 - len(rest)
    assert rest == whole.records[2:]


def test_a_page_of_nothing_tells_what_there_is(filled: Store) -> None:
    assert filled.scan("configmaps", limit=0) == ([], filled.revision(), None, 6)
    assert filled.scan("configmaps", limit=6) == (filled.scan("configmaps").records, filled.revision(), None, 0)


def test_a_scan_of_the_future_is_an_error(filled: Store) -> None:
    with pytest.raises(ValueError, match="future"):
        filled.scan("configmaps", at=filled.revision() + 1)


def test_changes_tell_what_was_written_wherever_a_page_ends(store: Store) -> None:
    start = store.revision()
    for number in range(10):
        store.write(Put(cm("a"), b"a%d" % number), Put(cm("b"), b"b%d" % number)).result()
    store.write(Delete(cm("b"))).result()
    whole = store.changes(start)
    assert [c.value for c in whole[:4]] == [b"a0", b"b0", b"a1", b"b1"]
    for limit in (1, 2, 3, 7, 20):
        found, after = [], start
        while page := store.changes(after, limit):
            assert len(page) <= limit
            found += page
            after = page[-1].revision
        assert found == whole
    assert store.changes(start + 3, 1) == [whole[3]]
    assert store.changes(start, 0) == []


def test_compaction_forgets_the_old_end_only(store: Store) -> None:
    start = store.revision()
    for number in range(10):
        store.write(Put(cm("a"), b"%d" % number)).result()
    before = store.scan("configmaps", at=start + 6)
    store.compact(4)
    assert store.oldest() == start + 6
    assert [c.value for c in store.changes(start + 6)] == [b"6", b"7", b"8", b"9"]
    assert store.changes(start + 6)[0].previous == b"5"
    assert store.scan("configmaps", at=start + 6) == before
    for ask in (lambda: store.changes(start + 5), lambda: store.scan("configmaps", at=start + 5)):
        with pytest.raises(Compacted) as raised:
            ask()
        assert (raised.value.asked, raised.value.oldest) == (start + 5, start + 6)
    store.compact(0)
    assert store.oldest() == store.revision() == start + 10
    store.write(Put(cm("a"), b"last")).result()
    assert [(c.value, c.previous) for c in store.changes(start + 10)] == [(b"last", b"9")]


def test_a_workspace_has_no_more_than_it_may(store: Store) -> None:
    many, event = CheckNumber("root", 3, frozenset({"events"})), Key("events", "root", "default", "e")
    bound, inner = Key("widgets.example.io:abc", "root", "", "w"), Key("~own", "root", "", "x")
    store.write(Put(cm("a"), b""), Put(bound, b""), Put(event, b""), Put(inner, b"")).result()
    store.write(Put(cm("other", cluster="other"), b"")).result()
    assert (store.number("root"), store.number("root", frozenset({"events"})), store.number("none")) == (3, 2, 0)
    assert store.write(Put(cm("b"), b""), many).result()[1] == 0
    with pytest.raises(TooMany) as refused:
        store.write(Put(cm("c"), b""), many).result()
    assert (refused.value.cluster, refused.value.number, refused.value.most) == ("root", 3, 3)
    assert store.get(cm("c")) is None
    store.write(Put(event._replace(name="f"), b""), many).result()
    store.write(Put(cm("a"), b"changed"), many).result()
    store.write(Put(cm("c"), b""), Delete(cm("b")), many).result()
    store.write(Put(cm("d"), b"")).result()
    store.write(Put(cm("a"), b"again"), many).result()
    store.write(Delete(cm("d")), many).result()
    assert store.number("root", frozenset({"events"})) == 3
    with store.view() as view:
        store.write(Delete(cm("a"))).result()
        assert (view.number("root"), store.number("root")) == (5, 4)


def test_however_many_write_at_once(store: Store) -> None:
    most = CheckNumber("root", 10)
    written = [store.write(Put(cm(f"n{number}"), b""), most) for number in range(50)]
    failed = [future for future in written if future.exception() is not None]
    assert len(failed) == 40
    assert all(isinstance(future.exception(), TooMany) for future in failed)
    assert store.number("root") == 10


def test_what_fills_a_store_hides_what_was_before(store: Store) -> None:
    start = store.revision()
    store.write(Put(cm("a"), b"1")).result()
    assert store.fill(Put(cm("a"), b"2"), Put(cm("b"), b"2")).result() == [start + 2, start + 3]
    assert store.oldest() == store.revision() == start + 3
    for after in (start, start + 1, start + 2):
        with pytest.raises(Compacted):
            store.changes(after)
    store.write(Put(cm("a"), b"3")).result()
    assert [(c.value, c.previous, c.previous_revision) for c in store.changes(start + 3)] == [(b"3", b"2", start + 2)]
    assert [r.value for r in store.scan("configmaps", at=start + 3).records] == [b"2", b"2"]


def test_marked_follows_marked_resources(opened: Callable[..., Store]) -> None:
    store = opened(declared=Declared(marked=frozenset({"crds"})))
    store.write(Put(cm("a"), b"")).result()
    assert store.marked() == 0
    _, crd, _ = store.write(Put(cm("a"), b""), Put(Key("crds", "root", "", "a"), b""), Put(cm("b"), b"")).result()
    assert store.marked() == crd
    store.write(Put(cm("a"), b"")).result()
    assert store.marked() == crd
    [gone] = store.write(Delete(Key("crds", "root", "", "a"))).result()
    assert store.marked() == gone
    store.close()
    store = opened()
    assert store.marked() == gone
    [again] = store.write(Put(Key("crds", "root", "", "a"), b"")).result()
    assert store.marked() == again


def test_a_workspace_has_a_mark_of_its_own(opened: Callable[..., Store]) -> None:
    store = opened(declared=Declared(marked=frozenset({"crds"})))
    here, there = Key("crds", "root", "", "x"), Key("crds", "other", "", "x")
    [_, first] = store.write(Put(cm("a"), b""), Put(here, b"1")).result()
    [second, _] = store.write(Put(there, b"1"), Put(cm("a"), b"2")).result()
    assert [store.marked(each) for each in ("root", "other", "none")] == [first, second, 0]
    [updated] = store.write(Put(here, b"2")).result()
    assert [store.marked(each) for each in ("root", "other")] == [updated, second]
    with store.view() as view:
        [gone] = store.write(Delete(here)).result()
        assert view.marked("root") == updated
    assert store.marked("root") == gone
    store.write(Delete(cm("a"))).result()
    assert (store.marked("root"), store.marked("other"), store.marked()) == (0, second, gone)
    [again] = store.fill(Put(here, b"3")).result()
    assert store.marked("root") == again


def test_subscribers_are_called_until_they_leave(store: Store, eventually: Callable[..., object]) -> None:
    rung, other, last = threading.Event(), threading.Event(), threading.Event()

    def broken() -> None:
        other.set()
        raise RuntimeError("a subscriber's own problem")

    leave_broken = store.subscribe(broken)
    leave = store.subscribe(rung.set)
    store.subscribe(last.set)
    store.write(Put(cm("a"), b"1")).result()
    assert rung.wait(60) and other.wait(60)

    def is_silent() -> bool:
        """For one whole round of rings: who comes behind it in that is rung."""
        for event in (rung, other, last):
            event.clear()
        store.write(Put(cm("a"), b"2")).result()
        assert other.wait(60) and last.wait(60)
        return not rung.is_set()

    leave()
    eventually(is_silent)  # a round for the first write may be under way still
    leave_broken()
    leave_broken()


def test_close_answers_what_waits(opened: Callable[..., Store]) -> None:
    store = opened()
    answers = [store.write(Put(cm(f"{n}"), b"x")) for n in range(500)]
    store.close()
    assert all(answer.done() and answer.exception() is None for answer in answers)
    store.close()
    with pytest.raises(RuntimeError):
        store.write(Put(cm("late"), b"x"))
    assert opened().count("configmaps") == 500


def test_a_cancelled_write_is_not_written(store: Store) -> None:
    answers = [store.write(Put(cm(f"{n}"), b"x")) for n in range(500)]
    cancelled = {f"{n}" for n, answer in enumerate(answers) if answer.cancel()}
    for answer in answers:
        if not answer.cancelled():
            answer.result()
    assert {r.key.name for r in store.scan("configmaps").records} == {f"{n}" for n in range(500)} - cancelled


def test_a_view_shows_all_as_it_was_when_it_was_opened(store: Store) -> None:
    store.write(Put(cm("a"), b"1"), Put(cm("b"), b"1"), PutRow(ROWS, "a", b"1")).result()
    seen, log = store.revision(), store.changes(store.oldest())
    with store.view() as view:
        store.write(
            PutRow(ROWS, "a", b"2"), Delete(cm("b")), Put(cm("c"), b"2"), Put(Key("new", "", "", ""), b"")
        ).result()
        assert (store.get_row(ROWS, "a"), store.get(cm("b"))) == (b"2", None)
        store.compact(0)
        store.clear()
        assert view.revision() == seen
        assert [record.value for record in view.scan("configmaps").records] == [b"1", b"1"]
        assert view.get_many([cm("a"), cm("c")]) == [Record(cm("a"), seen - 1, b"1", b""), None]
        assert view.changes(view.oldest()) == log
        assert view.resources() == ["configmaps"]
        assert (view.get_row(ROWS, "a"), view.scan_rows(ROWS)) == (b"1", [Row("a", b"1")])
    assert store.scan("configmaps").records == []


def test_it_can_be_cleared(store: Store) -> None:
    """As when a server finds that another one's world counts: revisions go on, and watchers begin anew."""
    store.write(Put(cm("a"), b"1"), Put(cm("b"), b"1")).result()
    gone, _ = store.write(Delete(cm("b")), PutRow(ROWS, "a", b"1")).result()
    store.clear()
    assert store.scan_rows(ROWS) == []
    assert store.get(cm("a")) is None
    assert store.scan("configmaps") == ([], store.revision(), None, 0)
    assert store.count("configmaps") == store.count("configmaps", "root") == 0
    assert store.resources("root") == []
    assert store.revision() > gone
    assert store.oldest() == store.marked() == store.revision()
    with pytest.raises(Compacted):
        store.changes(gone)
    at = store.revision()
    assert store.write(Put(cm("a"), b"2")).result() == [at + 1]
    assert [change.key for change in store.changes(at)] == [cm("a")]
