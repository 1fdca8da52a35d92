"""How far behind workspaces are that are held: what the server counts, against the branch itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.loadedfleet import A, B, LoadedFleet, configmap

from apiserver.registry import lags, tree
from reconciler.loading import lagging
from reconciler.loading.changeset import together
from reconciler.loading.lagging import Lagging

BAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: [1]}\n"


def lag(fleet: LoadedFleet, path: str) -> int | None:
    record = tree.workspace_at(fleet.store, path)
    assert record is not None
    fleet.store.write().result()  # what was counted is there
    return lags.lag(fleet.store, record)


def test_each_commit_takes_one_that_is_held_further_behind(fleet: LoadedFleet) -> None:
    counting = Lagging(fleet.store, fleet.mirror.repository)
    counting.count()
    assert lag(fleet, "root:a") is None
    for number in range(1, 4):
        loaded = fleet.commit({f"{A}/app.yaml": BAD, f"{B}/app.yaml": configmap(n=str(number))})
        counting.count(together(loaded.steps).held, loaded.head.id)
        assert (lag(fleet, "root:a"), lag(fleet, "root:b")) == (number, None)
    loaded = fleet.commit({f"{A}/app.yaml": configmap(n="mended")})
    counting.count(together(loaded.steps).held, loaded.head.id)
    assert lag(fleet, "root:a") is None
    assert lags.counted(fleet.store) == {}


def test_several_commits_at_once_count_each(fleet: LoadedFleet) -> None:
    counting = Lagging(fleet.store, fleet.mirror.repository)
    counting.count()
    fleet.repo.commit({f"{A}/app.yaml": BAD})
    fleet.repo.commit({f"{B}/app.yaml": BAD})
    loaded = fleet.commit({"workspaces/root/app.yaml": configmap(n="1")})
    counting.count(together(loaded.steps).held, loaded.head.id)
    assert (lag(fleet, "root:a"), lag(fleet, "root:b")) == (3, 2)


def test_of_more_than_are_counted_so_many_are_told(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lagging, "MOST", 3)
    counting = Lagging(fleet.store, fleet.mirror.repository)
    fleet.commit({f"{A}/app.yaml": BAD})
    counting.count()
    for number in range(4):
        loaded = fleet.commit({f"{B}/app.yaml": configmap(n=str(number))})
        counting.count(together(loaded.steps).held, loaded.head.id)
    assert lag(fleet, "root:a") == 3
    Lagging(fleet.store, fleet.mirror.repository).count()
    assert lag(fleet, "root:a") == 3


@given(
    turns=st.lists(st.tuples(st.sampled_from(("a", "b", "both", "none")), st.booleans(), st.integers(1, 3)), max_size=8)
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_counted_on_the_way_is_what_a_start_counts(
    turns: list[tuple[str, bool, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Pushes of several commits, that hold and mend, with restarts between."""
    fleet = LoadedFleet(Path(tmp_path_factory.mktemp("lags")) / "fleet")
    try:
        fleet.begin()
        counting = Lagging(fleet.store, fleet.mirror.repository)
        counting.count()
        for number, (whom, restart, together_) in enumerate(turns):
            for each in range(together_ - 1):
                fleet.repo.commit({"workspaces/root/app.yaml": configmap(n=f"{number}-{each}")})
            bad = {"a": (A,), "b": (B,), "both": (A, B), "none": ()}[whom]
            loaded = fleet.commit(
                {f"{each}/app.yaml": BAD if each in bad else configmap(n=str(number)) for each in (A, B)}
            )
            counting.count(together(loaded.steps).held, loaded.head.id)
            told = [lag(fleet, path) for path in ("root:a", "root:b")]
            assert [each is not None for each in told] == [A in bad, B in bad]
            again = Lagging(fleet.store, fleet.mirror.repository)
            again.count()
            assert [lag(fleet, path) for path in ("root:a", "root:b")] == told
            counting = again if restart else counting
    finally:
        fleet.close()
