"""A server that observes shows of what is rendered what a recovery would give, a change of what is shared included."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import LoadedFleet
from support.recoveries import assert_same
from support.renderedfleet import EDITS, PLACES, RenderedFleet

from apiserver.storage.protocol import Store
from reconciler.loading import feeds
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.shown import Shown
from reconciler.statusbranch.recorded import RecordedFleet

HISTORIES = st.lists(
    st.tuples(st.sampled_from(EDITS), st.integers(0, 6), st.sampled_from([*PLACES]), st.booleans()), max_size=8
)


def loader(fleet: LoadedFleet, store: Store) -> Loader:
    identities, repositories = Identities(fleet.keys / "identities"), fleet.mirror.repositories
    return Loader(store, repositories, identities, fleet.secrets.of, renders=fleet.renders)


def recorded(fleet: LoadedFleet) -> RecordedFleet:
    found = fleet.recorded()
    assert found is not None
    return found


def fed(fleet: LoadedFleet) -> dict[str, feeds.Fed | None]:
    return {r.path: feeds.noted(fleet.store, r.cluster) for r in fleet.records() if not r.errors}


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=HISTORIES)
@example(history=[("resources", 2, "root:a", True), ("part", 1, "root:b", True), ("share", 0, "root:a", True)])
@example(history=[("resources", 1, "root:a", True), ("base", 1, "root:a", True), ("below", 0, "root:a", True)])
def test_it_shows_what_a_recovery_gives(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int, str, bool]]
) -> None:
    found = RenderedFleet(tmp_path_factory.mktemp("observing"))
    found.begin()
    fleet = found.fleet
    other = LoadedFleet(found.folder / "observer", repo=fleet.repo, keys=fleet.keys, renders=found.renders)
    found.made.insert(0, other)
    shown = Shown(other.store, other.mirror.repository, lambda store: loader(other, store))
    try:
        shown.begin(recorded(other), "them/1")
        for name, number, path, told in history:
            found.happen(name, number, path)
            if told:
                fleet.publish()
                shown.follow(recorded(other), "them/1")
        fleet.publish()
        shown.follow(recorded(other), "them/1")
        new = LoadedFleet(found.folder / "recovered", repo=fleet.repo, keys=fleet.keys, renders=found.renders)
        found.made.insert(0, new)
        loader(new, new.store).begin(recorded(new).source, recorded(new))
        assert_same(other, new)
        assert fed(other) == fed(new)
    finally:
        for each in found.made:
            each.close()
