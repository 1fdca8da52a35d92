"""An edit that takes a namespace with state from where it runs loses copies, and is allowed as a deletion is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.loadedfleet import A, LoadedFleet, configmap
from support.lostcopies import (
    CLAIM,
    COPY,
    DATABASE,
    FILES,
    PLACE,
    PLACEMENTS,
    SPACE,
    TARGET,
    claim,
    database,
    decided,
    place,
    space,
)
from support.recoveries import Another, assert_recovers, assert_same

from apiserver.model import marks
from reconciler.plan.deletions import PROTECTED, Line, digest

Object = dict[str, Any]


@pytest.fixture
def running(fleet: LoadedFleet) -> LoadedFleet:
    """Namespace web of root:a runs on a target, with a claim on storage."""
    fleet.commit(FILES)
    assert fleet.held() == {}
    decided(fleet)
    return fleet


def error(fleet: LoadedFleet) -> str:
    [found] = fleet.held()["root:a"]
    return found


def asked(fleet: LoadedFleet) -> str:
    [found] = re.findall(r"Allow-Delete: ([0-9a-f]{40})'$", error(fleet))
    return str(found)


EDITS: dict[str, dict[str, str | None]] = {
    "the Namespace's label": {SPACE: space("other")},
    "the Placement's end": {PLACE: None},
    "the Placement's namespaces": {PLACE: place("other")},
    "the Placement's locations": {PLACE: place(region="us")},
    "leave to go": {PLACE: place(**{marks.MAY_LEAVE: TARGET})},
    "the Placement's name": {PLACE: place(name="renamed")},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_that_takes_copies_away_has_to_be_allowed(
    running: LoadedFleet, another: Another, edit: dict[str, str | None]
) -> None:
    """And is told of alike, by whoever judges it."""
    running.publish()
    running.commit(edit)
    gone = [Line("root:a", PLACEMENTS, "", "prod")] if "prod" not in json.dumps([*edit.values(), ""]) else []
    lines = [COPY, *(gone if PLACE in edit else [])]
    assert asked(running) == digest(lines)
    assert "root:a persistentvolumeclaims web/data (copy)" in error(running)
    assert f"runs on {TARGET}" in error(running)
    assert running.get("root:a", "namespaces", "web", "")["metadata"]["labels"]["app"] == "web"
    follower = another(running, "follower")
    follower.load(follower.recorded())
    assert_same(follower, running)
    new = assert_recovers(running, another)
    running.allow()
    assert running.held() == {}
    new.load()
    follower.load()
    assert_same(new, running)
    assert_same(follower, running)


@pytest.mark.parametrize(
    "edit",
    [
        {f"{A}/x1.yaml": configmap("x1", a="c")},
        {SPACE: space("web").replace('"labels"', '"annotations": {"a": "b"}, "labels"')},
        {PLACE: place(**{"a": "b"})},
        {PLACE: place(**{marks.MAY_LEAVE: "root:infra:east"})},
        {f"{A}/more.json": place(name="more", region="us")},
        {PLACE: place("other"), SPACE: space("other")},
    ],
    ids=["neither", "an annotation", "the Placement's annotation", "leave to go from elsewhere", "one more", "both"],
)
def test_an_edit_that_takes_nothing_from_where_it_runs_passes(
    running: LoadedFleet, edit: dict[str, str | None]
) -> None:
    running.commit(edit)
    assert running.held() == {}


def test_without_state_or_without_a_decision_nothing_is_lost(fleet: LoadedFleet) -> None:
    fleet.commit({**FILES, CLAIM: None})
    decided(fleet)
    fleet.commit({SPACE: space("other")})
    assert fleet.held() == {}
    fleet.commit({CLAIM: claim(), SPACE: space()})
    fleet.commit({PLACE: None})
    assert "(copy)" in error(fleet)
    fleet.commit({PLACE: place(name="another")})
    fleet.allow()
    fleet.commit({f"{A}/place.json": None})
    assert fleet.held() == {}


def test_a_claim_that_goes_with_its_placement_is_one_loss(running: LoadedFleet) -> None:
    running.commit({PLACE: None, CLAIM: None})
    lines = [Line("root:a", PLACEMENTS, "", "prod"), Line("root:a", "persistentvolumeclaims", "web", "data")]
    assert asked(running) == digest(lines)


def test_a_stateful_set_is_told_of_beside_the_claims(running: LoadedFleet) -> None:
    running.commit({DATABASE: database()})
    running.commit({SPACE: space("other")})
    assert asked(running) == digest([COPY, Line("root:a", "statefulsets.apps", "web", "db", copy=True)])


def test_what_its_owner_freed_may_go_with_an_edit(running: LoadedFleet) -> None:
    running.commit({CLAIM: claim(protected="false")})
    running.commit({SPACE: space("other")})
    assert running.held() == {}


def test_a_workspace_that_is_free_loses_its_copies_just_so(running: LoadedFleet) -> None:
    free = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
    running.commit({f"{A}/workspace.yaml": json.dumps({**free, "metadata": {"annotations": {PROTECTED: "false"}}})})
    running.commit({SPACE: space("other")})
    assert running.held() == {}


def test_an_edit_does_not_free_what_it_takes_away(running: LoadedFleet) -> None:
    running.commit({CLAIM: claim(protected="false"), SPACE: space("other")})
    assert "(copy)" in error(running)


def test_the_deletion_of_the_claim_is_no_leave_to_lose_its_copy(running: LoadedFleet) -> None:
    word = digest([Line("root:a", "persistentvolumeclaims", "web", "data")])
    running.repo.commit({SPACE: space("other")}, f"Move\n\nAllow-Delete: {word}\n")
    running.load()
    assert "(copy)" in error(running)


def test_a_namespace_that_every_workspace_has_loses_its_labels_with_its_manifest(fleet: LoadedFleet) -> None:
    """It stays, and is selected no more."""
    default = {SPACE: space(name="default"), CLAIM: claim(namespace="default")}
    fleet.commit({**FILES, **default})
    decided(fleet)
    fleet.commit({SPACE: None})
    assert asked(fleet) == digest([COPY._replace(namespace="default")])


def test_a_decision_cannot_be_taken_away_first(running: LoadedFleet) -> None:
    """Neither by a manifest that says another one, nor together with the edit."""
    running.commit({PLACE: place(**{marks.SYNC_TARGET: "other"})})
    running.commit({PLACE: place(**{marks.SYNC_TARGET: "other"}), SPACE: space("other")})
    assert "(copy)" in error(running)


def test_a_selector_that_cannot_be_read_selects_nothing_any_more(running: LoadedFleet) -> None:
    found = json.loads(place())
    found["spec"]["namespaceSelector"] = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    running.commit({PLACE: json.dumps(found)})
    assert "(copy)" in error(running)


def test_what_is_put_back_never_left(running: LoadedFleet) -> None:
    running.commit({SPACE: space("other")})
    running.commit({SPACE: space()})
    assert running.held() == {}
    assert running.get("root:a", PLACEMENTS, "prod", "")["metadata"]["annotations"][marks.SYNC_TARGET]


def test_a_recovery_does_not_do_what_a_claim_of_the_api_stood_against(running: LoadedFleet, another: Another) -> None:
    """It is lost with the store, and its copy is not for that."""
    running.commit({CLAIM: None})
    running.allow()
    made = json.loads(claim("runtime"))
    made["metadata"] |= {"annotations": {marks.ORIGIN: marks.RUNTIME}}
    running.put(running.key("root:a", "persistentvolumeclaims", "runtime", "web"), made)
    running.commit({SPACE: space("other")})
    assert asked(running) == digest([COPY._replace(name="runtime")])
    running.publish()
    new = another(running)
    new.load(new.recorded())
    assert new.held() == running.held()
    assert new.get("root:a", "namespaces", "web", "")["metadata"]["labels"]["app"] == "web"
    running.allow()
    new.load()
    assert new.held() == running.held() == {}


STEPS = st.sampled_from(
    [
        *EDITS.values(),
        {PLACE: place()},
        {SPACE: space()},
        {CLAIM: claim(), DATABASE: None},
        {CLAIM: None},
        {CLAIM: claim(protected="false")},
        {DATABASE: database()},
        "allow",
        "decide",
        "publish",
    ]
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=2, max_size=8))
def test_a_recovery_says_of_copies_what_the_running_server_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    directory = tmp_path_factory.mktemp("history")
    fleet = LoadedFleet(directory / "fleet")
    opened = [fleet]

    def another(old: LoadedFleet, name: str = "second", *, keys: Any = None) -> LoadedFleet:
        opened.append(LoadedFleet(directory / name, repo=old.repo, keys=keys))
        return opened[-1]

    try:
        fleet.begin(FILES)
        decided(fleet)
        fleet.publish()
        for step in steps:
            _take(fleet, step)
        fleet.publish()
        assert_recovers(fleet, another)
    finally:
        for each in opened:
            each.close()


def _take(fleet: LoadedFleet, step: Any) -> None:
    there = fleet.find("root:a", PLACEMENTS, "prod", "") is not None
    actions: dict[str, Callable[[], object]] = {
        "allow": lambda: fleet.allow() if fleet.held() else None,
        "decide": lambda: decided(fleet) if there else None,
        "publish": fleet.publish,
    }
    if isinstance(step, str):
        actions[step]()
    else:
        fleet.commit(step)
