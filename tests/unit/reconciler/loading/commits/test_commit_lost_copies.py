"""An edit through the API that takes copies away is its user's word for them, also for who loads the commit again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.commitfleet import CommitFleet
from support.loadedfleet import LoadedFleet
from support.lostcopies import COPY, FILES, PLACEMENTS, SPACE, decided, place, space

from apiserver.model import marks
from reconciler.plan.deletions import ALLOW, Line, digest
from reconciler.repository.trailers import said

Object = dict[str, Any]
GONE = Line("root:a", PLACEMENTS, "", "prod")


@pytest.fixture
def running(fleet: CommitFleet) -> CommitFleet:
    fleet.commit(FILES)
    decided(fleet)
    fleet.publish()
    return fleet


def places(fleet: LoadedFleet) -> list[Any]:
    """What says where the namespace runs."""
    found = fleet.find("root:a", PLACEMENTS, "prod", "")
    annotations = found["metadata"]["annotations"] if found else {}
    kept = [found and found["spec"], annotations.get(marks.MAY_LEAVE), annotations.get(marks.SYNC_TARGET)]
    return [fleet.get("root:a", "namespaces", "web", "")["metadata"]["labels"], *kept]


def elsewhere(fleet: CommitFleet) -> None:
    spec = json.loads(place(region="us"))["spec"]
    fleet.change("root:a", PLACEMENTS, "prod", spec=spec)


def relabelled(fleet: CommitFleet) -> None:
    live = fleet.get("root:a", "namespaces", "web", "")
    fleet.change("root:a", "namespaces", "web", metadata={**live["metadata"], "labels": {"app": "other"}})


def let_go(fleet: CommitFleet) -> None:
    live = fleet.get("root:a", PLACEMENTS, "prod", "")
    annotations = {**live["metadata"]["annotations"], marks.MAY_LEAVE: "root:infra:west"}
    fleet.change("root:a", PLACEMENTS, "prod", metadata={**live["metadata"], "annotations": annotations})


def deleted(fleet: CommitFleet) -> None:
    fleet.remove("root:a", PLACEMENTS, "prod")


@pytest.mark.parametrize(
    ("act", "hashes"),
    [
        (elsewhere, {digest([COPY])}),
        (relabelled, {digest([COPY])}),
        (let_go, {digest([COPY])}),
        (deleted, {digest([GONE]), digest([GONE, COPY])}),
    ],
)
def test_an_edit_bears_its_own_hash(
    running: CommitFleet,
    another: Callable[..., LoadedFleet],
    act: Callable[[CommitFleet], None],
    hashes: set[str],
) -> None:
    before = running.repo.head
    act(running)
    assert running.held() == {}
    assert running.repo.head != before
    assert said(running.mirror.repository, running.repo.head, before, ALLOW) == hashes
    # A server that knows where it ran follows the commit as it follows a push.
    new = another(running)
    new.load(new.recorded())
    assert new.held() == {}
    assert places(new) == places(running)


def test_an_edit_that_takes_nothing_bears_none(running: CommitFleet) -> None:
    before = running.repo.head
    live = running.get("root:a", "namespaces", "web", "")
    running.change("root:a", "namespaces", "web", metadata={**live["metadata"], "labels": {"app": "web", "a": "b"}})
    assert running.repo.head != before
    assert said(running.mirror.repository, running.repo.head, before, ALLOW) == set()


def test_its_word_is_spent(running: CommitFleet) -> None:
    """The same edit, pushed after it was taken back, is somebody else's."""
    relabelled(running)
    running.commit({SPACE: space()})
    running.commit({SPACE: space("other")})
    assert "(copy)" in running.held()["root:a"][0]
