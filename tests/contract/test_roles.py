"""What every store promises to who has a role, and to everybody else: another takes it over, and nothing is written any
more by who had it before."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.protocol import ABSENT, NEVER, Check, CheckRow, Conflict, Delete, Put, PutRow, RoleLost, Store
from apiserver.storage.roles import Role, take

AT, OTHER = Key("configmaps", "c", "", "a"), Key("configmaps", "c", "", "b")


def role(name: str, store: Store, lost: Callable[[], None] = lambda: None) -> Role:
    return Role(name, take(store, [name]), lost)


def test_what_is_written_under_a_role_is_written(store: Store) -> None:
    mine = role("loading", store).on(store)
    [revision, nothing] = mine.write(Put(AT, b"1", NEVER), PutRow(Table.KEPT_SECRETS, "x", b"1")).result()
    assert (revision, nothing) == (store.revision(), 0)
    assert (mine.get(AT), mine.get_row(Table.KEPT_SECRETS, "x")) == (store.get(AT), b"1")
    with mine.view() as view:
        assert view.revision() == mine.revision() == revision
    with pytest.raises(Conflict):
        mine.write(Put(AT, b"2", NEVER)).result()
    [filled] = mine.fill(Put(OTHER, b"1")).result()
    assert mine.oldest() == filled
    mine.close()
    assert store.write(Delete(AT)).result() == [store.revision()], "closing what a role has closes nothing"


def test_who_lost_a_role_writes_nothing_and_is_told_so(store: Store) -> None:
    lost = threading.Event()
    before = role("loading", store, lost.set)
    mine = before.on(store)
    mine.write(Put(AT, b"1")).result()
    after = role("loading", store)
    assert after.token > before.token
    there = store.revision()
    writes: list[Callable[[], object]] = [
        lambda: mine.write(Put(AT, b"2")).result(),
        lambda: mine.write(Put(OTHER, b"2"), PutRow(Table.KEPT_SECRETS, "x", b"")).result(),
        lambda: mine.fill(Put(AT, b"2")).result(),
        lambda: mine.write(PutRow(Table.KEPT_SECRETS, "x", b"")).result(),
        lambda: mine.write(CheckRow(Table.KEPT_SECRETS, "x", ABSENT)).result(),
        lambda: mine.write().result(),
        lambda: mine.compact(0),
        mine.clear,
        lambda: before.check(store),
        lambda: before.on(store),
    ]
    for write in writes:
        lost.clear()
        with pytest.raises(RoleLost, match="loading"):
            write()
        assert lost.wait(5)
    assert (store.revision(), store.get_row(Table.KEPT_SECRETS, "x"), len(store.changes(store.oldest()))) == (
        there,
        None,
        1,
    )
    found = store.get(AT)
    assert found is not None
    assert found.value == b"1"
    after.on(store).write(Put(AT, b"3")).result()
    after.check(store)


def test_a_lost_role_comes_before_every_other_reason(store: Store) -> None:
    """Else who tries again after a conflict would do so for ever."""
    mine = role("loading", store).on(store)
    role("loading", store)
    with pytest.raises(RoleLost):
        mine.write(Check(AT, 7), Put(Key("", "c", "", "no resource"), b"")).result()


def test_roles_are_lost_one_by_one(store: Store) -> None:
    loading, status = role("loading", store), role("status", store)
    role("status", store)
    loading.on(store).write(Put(AT, b"1")).result()
    with pytest.raises(RoleLost):
        status.on(store).write(Put(AT, b"2")).result()


def test_who_has_a_role_keeps_it_when_the_store_is_cleared(store: Store) -> None:
    mine, lost = role("loading", store).on(store), role("status", store).on(store)
    role("status", store)
    mine.write(Put(AT, b"1"), PutRow(Table.KEPT_SECRETS, "x", b"1")).result()
    mine.clear()
    assert (store.get(AT), store.get_row(Table.KEPT_SECRETS, "x")) == (None, None)
    mine.write(Put(AT, b"2")).result()
    with pytest.raises(RoleLost):
        lost.write(Put(AT, b"3")).result()


def test_several_are_taken_at_once(store: Store) -> None:
    before = role("status", store).on(store)
    token = take(store, ["loading", "status"])
    with pytest.raises(RoleLost):
        before.write(Put(AT, b"1")).result()
    for name in ("loading", "status"):
        Role(name, token).on(store).write(Put(AT, b"2")).result()
    assert {row.value for row in store.scan_rows(Table.ROLES)} == {b"%d" % token}


def test_a_store_that_belongs_to_another_takes_its_token(opened: Callable[..., Store]) -> None:
    main, target = opened(), opened("target")
    before = role("controllers", main)
    theirs = before.on(target)
    theirs.write(Put(AT, b"1")).result()
    assert before.on(target) is not theirs, "opened again"
    after = role("controllers", main)
    theirs.write(Put(AT, b"2")).result()
    after.on(target).write(Put(AT, b"3")).result()
    with pytest.raises(RoleLost):
        theirs.write(Put(AT, b"4")).result()
    with pytest.raises(RoleLost):
        before.on(target)


def test_a_token_is_greater_than_any_before_although_its_store_was_lost(opened: Callable[..., Store]) -> None:
    first = role("loading", opened("one"))
    second = role("loading", opened("another"))
    assert second.token > first.token


STEPS = st.lists(st.tuples(st.sampled_from(["take", "write", "clear"]), st.integers(0, 2)), max_size=30)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_only_who_took_a_role_last_writes(opened: Callable[..., Store], steps: list[tuple[str, int]]) -> None:
    """Several that each believe to have it, in any order."""
    store = opened()
    store.clear()
    held: dict[int, Store] = {}
    tokens: list[int] = []
    last, expected = -1, None
    try:
        for number, (step, who) in enumerate(steps):
            value = b"%d" % number
            if step == "take":
                taken = role("loading", store)
                held[who], last = taken.on(store), who
                tokens.append(taken.token)
            elif who in held and who != last:
                with pytest.raises(RoleLost):
                    held[who].write(Put(AT, value)).result() if step == "write" else held[who].clear()
            elif who in held and step == "write":
                held[who].write(Put(AT, value)).result()
                expected = value
            elif who in held:
                held[who].clear()
                expected = None
            found = store.get(AT)
            assert (found.value if found is not None else None) == expected
        assert tokens == sorted(set(tokens))
    finally:
        store.close()
