"""Judging is pure: it writes nothing, and asked twice it says the same, whatever happened before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.happenings import EVENTS, PUSHES, Happening, History
from support.loadedfleet import A, B, LoadedFleet
from support.widgets import binding, export, schema, widget

from apiserver.storage.protocol import Op, Put, ReadView
from reconciler.loading.case import Case, Needs, Verdict
from reconciler.loading.judge import Judge

READS = frozenset(name for name in dir(ReadView) if not name.startswith("_"))


class Reading:
    """A store of which nothing but its read view can be reached."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        assert name in READS, f"judging called {name} of the store"
        return getattr(self._store, name)


def shown(verdict: Verdict) -> list[Op]:
    """What is written, as readers see it: in which form a store keeps it is another matter."""
    return [Put(op.key, op.value, op.expect, op.stamp) if isinstance(op, Put) else op for op in verdict.changes.ops()]


@contextmanager
def twice(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Verdict | Needs]]:
    """Every judgement is made twice, from a store that can only be read."""
    judge, said = Judge.judge, list[Verdict | Needs]()

    def judged(self: Judge, case: Case) -> Verdict | Needs:
        grounds = self._grounds
        if not isinstance(grounds.store, Reading):
            object.__setattr__(grounds, "store", Reading(grounds.store))
        one, other = judge(self, case), judge(self, case)
        assert type(one) is type(other), case.path
        if isinstance(one, Verdict) and isinstance(other, Verdict):
            assert (one.record, one.problems, one.again) == (other.record, other.problems, other.again)
            assert shown(one) == shown(other), case.path
        said.append(one)
        return one

    with monkeypatch.context() as patched:
        patched.setattr(Judge, "judge", judged)
        yield said


HISTORIES = st.lists(
    st.tuples(st.sampled_from([*PUSHES, *EVENTS]), st.integers(0, 23), st.booleans()), min_size=1, max_size=8
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
def test_a_judgement_that_is_made_twice_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, history: History
) -> None:
    fleet = LoadedFleet(tmp_path_factory.mktemp("pure") / "fleet")
    try:
        with twice(monkeypatch) as said:
            happening = Happening(fleet)
            happening.begin()
            for name, number, load in history:
                happening.happen(name, number, load=load)
            fleet.load()
        assert said
    finally:
        fleet.close()


def test_whose_word_is_needed_is_said_instead_of_a_verdict(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{B}/schema.json": schema(), f"{B}/export.json": export(), f"{A}/binding.json": binding("root:b")}
    with twice(monkeypatch) as said:
        fleet.commit({**files, f"{A}/w.json": widget(size=1)})
    assert [each for each in said if isinstance(each, Needs)] == [Needs("root:b")], "once, and then it is known"
    assert fleet.held() == {}


def test_two_that_take_each_others_are_judged_by_what_their_manifests_offer(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with twice(monkeypatch) as said:
        fleet.commit(
            {
                f"{A}/schema.json": schema("a1"),
                f"{A}/export.json": export("a1"),
                f"{A}/binding.json": binding("root:b"),
                f"{B}/schema.json": schema("b1"),
                f"{B}/export.json": export("b1"),
                f"{B}/binding.json": binding("root:a"),
                f"{B}/w.json": widget(size=1),
            }
        )
    assert [each for each in said if isinstance(each, Needs)] == [Needs("root:b"), Needs("root:a")]
    assert fleet.held() == {}
