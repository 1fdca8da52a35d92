"""Pins: a workspace's own content as an earlier commit has it, while its workspace.yaml says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import ApiFleet
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.moving import move
from support.recoveries import assert_recovers, assert_same, recover

from apiserver.registry import pins as shown
from apiserver.registry import tree
from reconciler.loading import pins

HEAD = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
SOON, LATER = "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"
AT_SOON = 1893456000
Another = Callable[..., LoadedFleet]


def pinning(commit: str, **more: str) -> str:
    return f"{HEAD}spec: {{serve: {json.dumps({'commit': commit, **more})}}}\n"


class Clock:
    def __init__(self) -> None:
        self.at = 1e9

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pins, "now", made)
    return made


@pytest.fixture
def first(fleet: LoadedFleet, clock: Clock) -> str:
    """The commit that has `a: b`; the head says something else, and has an object more."""
    fleet.commit({f"{A}/app.yaml": configmap(a="new"), f"{A}/more.yaml": configmap("more")})
    return fleet.repo.commits[0]


def pin(fleet: LoadedFleet, commit: str, **more: str) -> None:
    fleet.commit({f"{A}/workspace.yaml": pinning(commit, **more)})


def applied(fleet: LoadedFleet, path: str = "root:a") -> dict[str, Any]:
    return fleet.condition(fleet.workspace(path), "CommitApplied")


def serve(fleet: LoadedFleet) -> None:
    pins.serve(fleet.store, fleet.loader.look_again)


def test_its_own_content_is_that_of_the_commit(fleet: LoadedFleet, first: str, another: Another) -> None:
    pin(fleet, first, reason="the new one fails")
    assert fleet.held() == {}
    assert fleet.data("root:a") == {"a": "b"}
    assert fleet.data("root:a", "more") is None
    said = applied(fleet)
    assert (said["status"], said["reason"]) == ("True", "Pinned")
    assert said["message"].startswith(f"pinned to {first[:10]} by {A}/workspace.yaml (the new one fails): ")
    assert shown.in_short(fleet.workspace("root:a")) == first[:10]
    assert_recovers(fleet, another)


def test_what_the_head_has_of_it_counts_for_nothing_and_is_not_judged(
    fleet: LoadedFleet, first: str, another: Another
) -> None:
    pin(fleet, first)
    fleet.commit({f"{A}/app.yaml": "broken: [\n", f"{A}/other.yaml": configmap("other")})
    assert (fleet.held(), fleet.written()) == ({}, [])
    assert fleet.data("root:a") == {"a": "b"}
    assert_recovers(fleet, another)
    fleet.commit({f"{A}/workspace.yaml": HEAD})
    assert "root:a" in fleet.held()
    assert fleet.data("root:a") == {"a": "b"}
    fleet.commit({f"{A}/app.yaml": configmap(a="mended")})
    assert fleet.held() == {}
    assert fleet.data("root:a") == {"a": "mended"}
    assert fleet.data("root:a", "other") == {"a": "b"}
    assert applied(fleet)["reason"] == "Applied"
    assert_recovers(fleet, another, "again")


def test_its_children_are_served_as_ever(fleet: LoadedFleet, first: str) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/k.yaml": configmap("k", v="1")})
    pin(fleet, first)
    assert fleet.data("root:a:kid", "k") == {"v": "1"}
    fleet.commit({f"{A}/kid/k.yaml": configmap("k", v="2"), f"{A}/deep/er/workspace.yaml": ""})
    assert fleet.data("root:a:kid", "k") == {"v": "2"}
    assert fleet.record("root:a:er").served
    assert fleet.data("root:a") == {"a": "b"}


def test_it_ends_by_the_clock_once_and_for_all(fleet: LoadedFleet, first: str, clock: Clock, another: Another) -> None:
    pin(fleet, first, until=SOON)
    assert shown.in_short(fleet.workspace("root:a")) == f"{first[:10]} until {SOON}"
    assert tree.pins_ending(fleet.store) == {"root:a": AT_SOON}
    assert pins.wait(fleet.store, 5.0) == 5.0
    clock.at = AT_SOON - 2
    assert pins.wait(fleet.store, 5.0) == 2.0
    serve(fleet)
    assert fleet.data("root:a") == {"a": "b"}
    fleet.publish()
    clock.at = AT_SOON
    late = recover(fleet, another, "late")
    assert late.data("root:a") == {"a": "b"}  # as it was recorded
    serve(late)
    serve(fleet)
    assert (fleet.data("root:a"), fleet.data("root:a", "more")) == ({"a": "new"}, {"a": "b"})
    assert (applied(fleet)["reason"], shown.in_short(fleet.workspace("root:a"))) == ("Applied", None)
    assert tree.pins_ending(fleet.store) == {}
    assert_same(late, fleet)
    new = assert_recovers(fleet, another)
    clock.at = 1e9
    for each in (fleet, new):
        each.loader.look_again(["root:a"])
        assert each.data("root:a") == {"a": "new"}
    fleet.commit({f"{A}/app.yaml": configmap(a="newer")})
    assert fleet.data("root:a") == {"a": "newer"}
    pin(fleet, first, until=LATER)
    assert fleet.data("root:a") == {"a": "b"}


def test_one_that_is_over_when_it_comes_is_none(fleet: LoadedFleet, first: str, clock: Clock) -> None:
    clock.at = AT_SOON + 1
    pin(fleet, first, until=SOON)
    pin(fleet, "1" * 40, until=SOON)
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "new"})


def test_that_it_is_over_is_met_with_a_commit_too(fleet: LoadedFleet, first: str, clock: Clock) -> None:
    pin(fleet, first, until=SOON)
    clock.at = AT_SOON
    fleet.commit({f"{A}/third.yaml": configmap("third")})
    assert fleet.data("root:a") == {"a": "new"}
    assert fleet.data("root:a", "third") == {"a": "b"}
    assert applied(fleet)["reason"] == "Applied"
    seen = fleet.store.revision()
    serve(fleet)
    assert fleet.store.revision() == seen


def error(fleet: LoadedFleet) -> str:
    [said] = fleet.held()["root:a"]
    assert said.startswith(f"{A}/workspace.yaml:3: spec.serve.commit is ")
    return said


def test_a_pin_to_what_never_was_holds_and_says_what_to_do(fleet: LoadedFleet, first: str, another: Another) -> None:
    pin(fleet, "1" * 40)
    assert "which is no commit of this repository (name one that the branch was at, as `git log" in error(fleet)
    assert fleet.data("root:a") == {"a": "new"}
    assert shown.in_short(fleet.workspace("root:a")) is None
    head = fleet.repo.head
    side = fleet.repo.commit({f"{A}/app.yaml": configmap(a="side")}, parent=first)
    fleet.repo.reset(head)
    fleet.repo.merge({f"{A}/workspace.yaml": pinning(side)}, side)
    fleet.load()
    assert "which the branch never was at before this commit (name one that it was at, and none that" in error(fleet)
    assert f"or take spec.serve out: treeplane resume {A})" in error(fleet)
    assert_recovers(fleet, another)
    pin(fleet, first)
    assert fleet.held() == {}
    assert fleet.data("root:a") == {"a": "b"}


def test_what_is_wrong_in_the_commit_is_told_with_it(fleet: LoadedFleet, first: str, another: Another) -> None:
    fleet.commit({f"{A}/app.yaml": "broken: [\n"})
    broken = fleet.repo.head
    fleet.commit({f"{A}/app.yaml": configmap(a="mended")})
    pin(fleet, broken)
    [said] = fleet.held()["root:a"]
    assert said.startswith(f"{A}/app.yaml:")
    assert f", in {broken[:10]} to which it is pinned" in said
    assert (fleet.data("root:a"), fleet.record("root:a").pin) == ({"a": "mended"}, {})
    assert_recovers(fleet, another)


def test_one_that_is_wrong_leaves_what_is_pinned(fleet: LoadedFleet, first: str, another: Another) -> None:
    pin(fleet, first)
    pin(fleet, "1" * 40)
    assert "no commit of this repository" in error(fleet)
    assert fleet.data("root:a") == {"a": "b"}
    assert applied(fleet)["message"].startswith(f"held back, and pinned to {first[:10]} by {A}/workspace.yaml: ")
    assert shown.in_short(fleet.workspace("root:a")) == first[:10]
    assert_recovers(fleet, another)
    fleet.commit({f"{A}/workspace.yaml": "kind: [\n"})
    assert len(fleet.held()["root:a"]) == 1  # nothing is said of what the head has
    assert fleet.data("root:a") == {"a": "b"}
    assert_recovers(fleet, another, "again")
    fleet.commit({f"{A}/workspace.yaml": None, f"{A}/app.yaml": "broken: [\n"})
    [said] = fleet.held()["root:a"]
    assert "was removed, but manifests remain below it" in said
    assert fleet.data("root:a") == {"a": "b"}
    assert_recovers(fleet, another, "lost")


def test_a_workspace_that_was_made_anew_is_another_one(fleet: LoadedFleet, first: str, another: Another) -> None:
    fleet.delete({A: None})
    gone = fleet.repo.head
    fleet.commit({f"{A}/workspace.yaml": pinning(first)})
    assert not fleet.record("root:a").served
    assert_recovers(fleet, another, "unserved")
    fleet.commit({f"{A}/workspace.yaml": None})
    fleet.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(a="again")})
    made = fleet.repo.head
    pin(fleet, first)
    assert f"another workspace was root:a then: this one appeared with {made[:10]}" in error(fleet)
    pin(fleet, gone)
    assert "in which root:a was not there" in error(fleet)
    pin(fleet, made)
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "again"})


def test_a_fleet_that_is_loaded_first_may_be_pinned_to_what_was_before(
    fleet: LoadedFleet, first: str, another: Another
) -> None:
    pin(fleet, first)
    new = another(fleet)
    new.load()
    assert (new.held(), new.data("root:a")) == ({}, {"a": "b"})
    fleet.delete({B: None})
    fleet.commit({f"{B}/workspace.yaml": pinning(first), f"{B}/app.yaml": configmap()})
    third = another(fleet, "third")
    third.load()
    assert "root:b was not there in" in third.held()["root:b"][0]


def test_what_a_pin_takes_away_has_to_be_allowed(fleet: LoadedFleet, first: str, another: Another) -> None:
    fleet.commit({f"{A}/many.yaml": "---\n".join(configmap(f"m{n}") for n in range(40))})
    pin(fleet, first)
    assert "Allow-Delete" in fleet.held()["root:a"][0]
    assert fleet.data("root:a") == {"a": "new"}
    fleet.allow()
    assert (fleet.held(), fleet.data("root:a"), fleet.data("root:a", "m3")) == ({}, {"a": "b"}, None)
    assert_recovers(fleet, another)


def test_so_has_what_its_end_takes_away(fleet: LoadedFleet, clock: Clock, another: Another) -> None:
    fleet.commit({f"{A}/many.yaml": "---\n".join(configmap(f"m{n}") for n in range(40))})
    many = fleet.repo.head
    pin(fleet, many, until=SOON)
    fleet.commit({f"{A}/many.yaml": None})
    assert (fleet.held(), fleet.data("root:a", "m3")) == ({}, {"a": "b"})
    clock.at = AT_SOON
    serve(fleet)
    assert "Allow-Delete" in fleet.held()["root:a"][0]
    assert tree.pins_ending(fleet.store) == {}
    assert fleet.data("root:a", "m3") == {"a": "b"}
    assert_recovers(fleet, another)
    fleet.allow()
    assert (fleet.held(), fleet.data("root:a", "m3")) == ({}, None)


def test_a_removed_workspace_counts_with_what_it_is_pinned_to(fleet: LoadedFleet, first: str) -> None:
    protected = configmap("kept").replace(
        "{name: kept}", "{name: kept, annotations: {treeplane.dev/protected: 'true'}}"
    )
    fleet.commit({f"{A}/kept.yaml": protected})
    pin(fleet, fleet.repo.head)
    fleet.commit({f"{A}/kept.yaml": None})
    fleet.commit({A: None})
    assert "root:a" in fleet.held()
    assert fleet.data("root:a", "kept") == {"a": "b"}


def test_who_is_pinned_does_not_move(fleet: LoadedFleet, first: str) -> None:
    pin(fleet, first)
    uid = fleet.workspace("root:a")["metadata"]["uid"]
    text = f"{HEAD}metadata: {{uid: {uid}}}\nspec: {{serve: {{commit: {first}}}}}\n"
    head = fleet.repo.files(fleet.repo.head)
    there = {name.replace(f"{A}/", "workspaces/root/c/"): t for name, t in head.items() if name.startswith(f"{A}/")}
    fleet.commit({A: None, **there, "workspaces/root/c/workspace.yaml": text})
    assert "root:a is pinned: take spec.serve out in a commit before" in str(fleet.held()["root:a"])
    assert fleet.data("root:a") == {"a": "b"}


def test_one_that_moved_is_what_it_was_since_it_moved(fleet: LoadedFleet, first: str, another: Another) -> None:
    """Where it is now another workspace was before, of the same path."""
    fleet.delete({B: None})
    gone = fleet.repo.head
    move(fleet, A, B)
    moved = fleet.repo.head
    fleet.commit({f"{B}/app.yaml": configmap(a="later")})

    def pinned(commit: str) -> list[str]:
        uid = fleet.workspace("root:b")["metadata"]["uid"]
        said = {"metadata": {"uid": uid}, "spec": {"serve": {"commit": commit}}}
        head = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
        fleet.commit({f"{B}/workspace.yaml": json.dumps({**head, **said})})
        return fleet.held().get("root:b", [])

    [said] = pinned(first)
    assert f"root:b was not there in {fleet.repo.commits[2][:10]}, which came later" in said
    [said] = pinned(gone)
    assert "in which root:b was not there" in said
    assert pinned(moved) == []
    assert fleet.data("root:b") == {"a": "new"}
    assert_recovers(fleet, another)


def test_a_parent_inherits_nothing_from_a_commit_that_had_lost_a_file(fleet: LoadedFleet, clock: Clock) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/k.yaml": configmap("k")})
    fleet.commit({f"{A}/kid/workspace.yaml": None})
    lost = fleet.repo.head
    assert "root:a:kid" in fleet.held()
    pin(fleet, lost)
    assert f"in which {A}/kid had lost the workspace.yaml of root:a:kid" in error(fleet)
    fleet.commit({f"{A}/workspace.yaml": "", f"{A}/kid/workspace.yaml": ""})
    assert fleet.held() == {}
    pin(fleet, lost)
    assert f"in which {A}/kid had lost the workspace.yaml of root:a:kid" in error(fleet)
    assert fleet.data("root:a", "k") is None


def test_root_can_be_pinned(fleet: LoadedFleet, first: str, another: Another) -> None:
    fleet.commit({"workspaces/root/app.yaml": configmap(a="new")})
    fleet.commit({"workspaces/root/workspace.yaml": pinning(first)})
    assert (fleet.held(), fleet.data("root")) == ({}, {"a": "b"})
    assert_recovers(fleet, another)


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("2030-02-31T00:00:00Z", "spec.serve.until is '2030-02-31T00:00:00Z', which is no time"),
        ("tomorrow", "spec.serve.until is 'tomorrow'"),
        ("1960-01-01T00:00:00Z", "which is before 1970"),
    ],
)
def test_an_end_that_is_no_time_is_an_error_of_the_file(fleet: LoadedFleet, first: str, until: str, said: str) -> None:
    pin(fleet, first, until=until)
    assert said in fleet.held()["root:a"][0]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiFleet]:
    made = ApiFleet(tmp_path / "api")
    head = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\n"
    made.begin({"treeplane.yaml": f"{head}spec: {{writes: Store}}\n"})
    yield made
    made.close()


def test_one_that_no_commit_knows_of_is_not_pinned(api: ApiFleet) -> None:
    serve = {"serve": {"commit": api.repo.head}}
    refused = api.make("root:new", serve)
    assert (refused.status, "no commit knows of this workspace" in refused.message) == (403, True)
    api.make("root:new")
    refused = api.call("PATCH", "root", "/apis/tenancy.kcp.io/v1alpha1/workspaces/new", {"spec": serve},
                       kind="application/merge-patch+json")  # fmt: skip
    assert (refused.status, "no commit knows of this workspace" in refused.message) == (403, True)
