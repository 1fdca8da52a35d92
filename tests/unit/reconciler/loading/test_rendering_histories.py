"""Whatever becomes of files, bases, what is shared, programs and servers: what is served is what comes of the files
where that can be rendered, and stays as it is where it cannot; a recovery finds the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import LoadedFleet
from support.recoveries import assert_same
from support.renderedfleet import EDITS, PLACES, WORLD, RenderedFleet

from apiserver.model.commits import own
from reconciler.loading import feeds

HISTORIES = st.lists(
    st.tuples(st.sampled_from(EDITS + EDITS + WORLD), st.integers(0, 6), st.sampled_from([*PLACES])), max_size=14
)


@contextmanager
def rendering(factory: pytest.TempPathFactory) -> Iterator[RenderedFleet]:
    found = RenderedFleet(factory.mktemp("rendering"))
    try:
        found.begin()
        yield found
    finally:
        for each in found.made:
            each.close()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=HISTORIES)
@example(history=[("version", 2, "root:a"), ("x", 1, "root:a"), ("version", 3, "root:a"), ("lose", 0, "root:a")])
@example(history=[("away", 0, "root:a"), ("prefix", 1, "root:a"), ("prefix", 2, "root:a"), ("back", 0, "root:a")])
@example(history=[("resources", 3, "root:a"), ("share", 0, "root:a"), ("shared", 1, "root:a"), ("share", 0, "root:a")])
@example(history=[("below", 0, "root:a"), ("x", 1, "root:a"), ("lose", 0, "root:a"), ("below", 0, "root:a")])
def test_what_is_served_follows_from_the_files_and_the_programs(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int, str]]
) -> None:
    with rendering(tmp_path_factory) as found:
        found.check(None)
        for name, number, path in history:
            before = {each: found.served(each) for each in PLACES}
            found.happen(name, number, path)
            found.check(before if name not in ("version", "restart", "lose") else None)
        found.happen("back", 0, "root:a")
        found.happen("notes", 9, "root:b")
        found.check(None)
        found.fleet.publish()
        if made_otherwise(found.fleet):
            return
        new = found.recovered()
        found.made.insert(0, new)
        assert_same(new, found.fleet)
        assert new.writer().flush() is None
        assert rows(new) == rows(found.fleet)
        if not found.fleet.held():
            fresh = LoadedFleet(found.folder / "fresh", repo=found.fleet.repo, renders=found.renders)
            found.made.insert(0, fresh)
            fresh.loader.load(own(found.fleet.repo.head))
            fleet = found.fleet
            served = {path: found.served(path) for path in PLACES}
            found.made.append(fresh)
            assert {path: found.served(path) for path in PLACES} == served
            found.made.append(fleet)
            assert rows(fresh) == rows(fleet)


def made_otherwise(fleet: LoadedFleet) -> bool:
    """Whether what is served of a workspace that is held was made by programs that are others now. A recovery makes it
    by those that there are."""
    found = (feeds.noted(fleet.store, record.cluster) for record in fleet.records() if record.errors)
    return any(each is not None and each.by != fleet.renders.fingerprint for each in found)


def rows(fleet: LoadedFleet) -> dict[str, feeds.Fed | None]:
    """What workspaces are rendered of; of one that is held it may be more than it names by now."""
    records = (record for record in fleet.records() if not record.errors)
    return {record.path: feeds.noted(fleet.store, record.cluster) for record in records}
