"""What workspaces take of others by pushes, one after the other: no way round whom it is asked of, and nobody is asked
twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.loadedfleet import configmap
from support.moving import HEAD, moving, uid_of
from support.offering import OFFERED, UNBOUND, UNUSED, R, allow, kind, of_type
from support.ownedfleet import ADMIN, OwnedFleet, granting, pushers
from support.recoveries import assert_same
from support.widgets import binding

from apiserver.model.storagenames import BINDINGS, EXPORTS, TYPES


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[OwnedFleet]:
    made = OwnedFleet(tmp_path / "fleet")
    made.begin(OFFERED)
    assert made.held() == {}
    yield made
    made.close()


@pytest.fixture
def recovered(tmp_path: Path) -> Iterator[Callable[[OwnedFleet], OwnedFleet]]:
    made: list[OwnedFleet] = []

    def recover(fleet: OwnedFleet) -> OwnedFleet:
        fleet.publish()
        made.append(OwnedFleet(tmp_path / f"recovered{len(made)}", fleet))
        made[-1].load(made[-1].recorded())
        assert_same(made[-1], fleet)
        return made[-1]

    yield recover
    for each in made:
        each.close()


def test_what_is_held_is_not_taken_by_another_push_of_the_same(owned: OwnedFleet) -> None:
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b")})
    owned.push("alice", {f"{R}/a/take.yaml": f"{binding('root:b')}\n"})
    owned.push("alice", {f"{R}/a/take.yaml": None, f"{R}/a/other.yaml": binding("root:b")})
    [error] = owned.held()["root:a"]
    assert UNBOUND in error
    # Nor by making it one that cannot be read, or that is hidden, for a while.
    for files, back in (
        ({f"{R}/a/other.yaml": "kind: ["}, {f"{R}/a/other.yaml": binding("root:b")}),
        ({f"{R}/a/.treeplaneignore": "other.yaml\n"}, {f"{R}/a/.treeplaneignore": None}),
        ({f"{R}/a/other.yaml": binding("root:b").replace('"name"', '"nom"')}, {f"{R}/a/other.yaml": binding("root:b")}),
        ({f"{R}/a/bad.yaml": "kind: ["}, {f"{R}/a/bad.yaml": None}),
    ):
        owned.push("alice", files)
        owned.push("alice", back)
        assert UNBOUND in owned.held()["root:a"][0], files


def test_another_reference_is_asked_about_anew(owned: OwnedFleet) -> None:
    allow(owned, "alice", only="widgets")
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b")})
    assert owned.held() == {}
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b", wanted="gadgets")})
    assert "no permission to bind to export root:b:gadgets" in owned.held()["root:a"][0]
    # It says again what is served, which nobody is asked about.
    allow(owned, "nobody")
    owned.push("alice", {f"{R}/a/take.yaml": None, f"{R}/a/elsewhere/take.yaml": f"{binding('root:b')}\n"})
    assert owned.held() == {}
    # What is served under one name is another thing under the next.
    owned.push("alice", {f"{R}/a/more.yaml": binding("root:b", "more")})
    assert UNBOUND in owned.held()["root:a"][0]


def test_what_somebody_else_stood_for_is_not_asked_of_the_next(owned: OwnedFleet) -> None:
    """The workspace is held for something else meanwhile."""
    allow(owned, "alice")
    owned.push("carol", {f"{R}/a/pushers.yaml": pushers("alice", "dave")})
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b"), f"{R}/a/bad.yaml": "kind: ["})
    owned.push("dave", {f"{R}/a/take.yaml": f"{binding('root:b')}\n", f"{R}/a/bad.yaml": None})
    assert owned.held() == {}


def test_two_wrongs_of_one_commit_are_allowed_each_by_whom_it_is(owned: OwnedFleet) -> None:
    owned.push("dave", {f"{R}/a/take.yaml": binding("root:b")})
    said = f"Allow\n\nAllow-Push: {owned.repo.head}\n"
    assert len(owned.held()["root:a"]) == 2
    owned.push("alice", {}, said)
    [error] = owned.held()["root:a"]
    assert UNBOUND in error
    owned.push("bob", {}, said)
    assert owned.held() == {}


def test_what_nobody_may_make_is_not_taken_by_making_it_allowed(owned: OwnedFleet) -> None:
    owned.push("dave", {f"{R}/a/kid/workspace.yaml": of_type("gold", "root:b")})
    assert "is touched" in owned.held()["root:a:kid"][0]
    owned.push("alice", {}, f"Allow\n\nAllow-Push: {owned.repo.head}\n")
    [error] = owned.held()["root:a:kid"]
    assert UNUSED in error


def test_a_workspace_that_moves_keeps_what_it_has(owned: OwnedFleet) -> None:
    owned.push(
        "carol",
        {f"{R}/a/pushers.yaml": pushers("alice"), f"{R}/c/workspace.yaml": "", f"{R}/c/p.yaml": pushers("alice")},
    )
    allow(owned, "alice")
    owned.push(
        "alice", {f"{R}/a/kid/workspace.yaml": of_type("gold", "root:b"), f"{R}/a/kid/take.yaml": binding("root:b")}
    )
    cluster = owned.record("root:a:kid").cluster
    allow(owned, "nobody")
    uid = uid_of(owned, "root:a:kid")
    files = moving(owned, f"{R}/a/kid", f"{R}/c/kid", uid)
    files[f"{R}/c/kid/workspace.yaml"] = of_type("gold", "root:b").replace("spec:", f"metadata: {{uid: {uid}}}\nspec:")
    owned.push("alice", files)
    assert owned.held() == {}
    assert owned.record("root:c:kid").cluster == cluster
    # One that only looks like it is another one.
    owned.push(
        "alice", {f"{R}/c/twin/workspace.yaml": of_type("gold", "root:b"), f"{R}/c/twin/take.yaml": binding("root:b")}
    )
    assert len(owned.held()["root:c:twin"]) == 2


def test_what_is_held_does_not_move_out_of_it(owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet]) -> None:
    owned.push("alice", {f"{R}/a/kid/workspace.yaml": "", f"{R}/a/kid/app.yaml": configmap()})
    owned.push("alice", {f"{R}/a/kid/take.yaml": binding("root:b")})
    assert UNBOUND in owned.held()["root:a:kid"][0]
    owned.push("alice", moving(owned, f"{R}/a/kid", f"{R}/a/new", uid_of(owned, "root:a:kid")))
    assert any(UNBOUND in error for error in owned.held()["root:a:new"])
    recovered(owned)
    # It is a new workspace, and what it takes was never asked about.
    owned.push("alice", {f"{R}/a/new/workspace.yaml": ""})
    assert UNBOUND in owned.held()["root:a:new"][0]


def test_what_may_not_move_has_nothing_for_that(owned: OwnedFleet) -> None:
    """A move that is refused was no excuse for another workspace to have what this one has."""
    allow(owned, "alice")
    kid = {f"{R}/a/kid/workspace.yaml": of_type("gold", "root:b"), f"{R}/a/kid/take.yaml": binding("root:b")}
    owned.push("alice", {**kid, f"{R}/a/kid/app.yaml": configmap()})
    allow(owned, "nobody")
    files = moving(owned, f"{R}/a/kid", f"{R}/a/late/new", uid_of(owned, "root:a:kid"))
    files[f"{R}/a/late/workspace.yaml"] = ""  # which has to be there before
    owned.push("alice", files)
    assert owned.held().keys() == {"root:a:kid", "root:a:late:new"}
    owned.push("alice", {f"{R}/a/late/new/workspace.yaml": of_type("gold", "root:b")})
    told = " ".join(owned.held()["root:a:late:new"])
    assert UNBOUND in told
    assert UNUSED in told


def test_a_pin_to_what_was_never_taken_is_asked_about(
    owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet]
) -> None:
    owned.push("alice", {f"{R}/a/kid/workspace.yaml": "", f"{R}/a/kid/app.yaml": configmap()})
    owned.push("alice", {f"{R}/a/kid/take.yaml": binding("root:b")})
    did = owned.repo.head
    owned.push("alice", {f"{R}/a/kid/take.yaml": None})
    assert owned.held() == {}
    owned.push("alice", {f"{R}/a/kid/workspace.yaml": f"{HEAD}spec: {{serve: {{commit: {did}}}}}\n"})
    assert UNBOUND in owned.held()["root:a:kid"][0]
    recovered(owned)
    owned.push("alice", {f"{R}/a/kid/workspace.yaml": ""})
    assert owned.held() == {}


def test_what_is_pushed_while_it_is_pinned_is_held_when_that_is_over(
    owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet]
) -> None:
    owned.push("alice", {f"{R}/a/kid/workspace.yaml": "", f"{R}/a/kid/app.yaml": configmap()})
    owned.push("alice", {f"{R}/a/kid/workspace.yaml": f"{HEAD}spec: {{serve: {{commit: {owned.repo.head}}}}}\n"})
    owned.push("alice", {f"{R}/a/kid/take.yaml": binding("root:b")})
    assert owned.held() == {}
    again = recovered(owned)
    owned.push("alice", {f"{R}/a/kid/workspace.yaml": ""})
    again.load()
    assert UNBOUND in owned.held()["root:a:kid"][0]
    assert_same(again, owned)


def test_what_a_pin_has_served_is_not_what_the_branch_may_say(
    owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet]
) -> None:
    kid = f"{R}/a/kid"
    owned.push(
        ADMIN, {f"{kid}/workspace.yaml": "", f"{kid}/app.yaml": configmap(), f"{kid}/take.yaml": binding("root:b")}
    )
    owned.push("alice", {f"{kid}/workspace.yaml": f"{HEAD}spec: {{serve: {{commit: {owned.repo.head}}}}}\n"})
    owned.push("alice", {f"{kid}/take.yaml": None})
    owned.push("alice", {f"{kid}/again.yaml": binding("root:b")})
    did = owned.repo.head
    assert owned.held() == {}
    again = recovered(owned)
    owned.push("alice", {f"{kid}/workspace.yaml": ""})
    again.load()
    assert UNBOUND in owned.held()["root:a:kid"][0]
    assert_same(again, owned)
    recovered(owned)
    owned.push("bob", {}, f"Allow\n\nAllow-Push: {did}\n")
    assert owned.held() == {}


def test_what_the_branch_said_all_the_while_is_asked_about_by_no_pin(owned: OwnedFleet) -> None:
    kid = f"{R}/a/kid"
    owned.push(ADMIN, {f"{kid}/workspace.yaml": "", f"{kid}/take.yaml": binding("root:b")})
    first = owned.repo.head
    owned.push("alice", {f"{kid}/app.yaml": configmap()})
    for commit in (first, owned.repo.head):
        owned.push("alice", {f"{kid}/workspace.yaml": f"{HEAD}spec: {{serve: {{commit: {commit}}}}}\n"})
        assert owned.held() == {}
    owned.push("alice", {f"{kid}/take.yaml": None, f"{kid}/other.yaml": binding("root:b")})
    owned.push("alice", {f"{kid}/workspace.yaml": ""})
    assert owned.held() == {}


# -- types that a workspace.yaml does not name in full


def chain(owned: OwnedFleet) -> None:
    """root:m is carol's; in it is root:m:n, where alice may push. root:m offers `gold` to whom she lets use it."""
    owned.push(
        "carol",
        {f"{R}/m/workspace.yaml": "", f"{R}/m/n/workspace.yaml": "", f"{R}/m/n/pushers.yaml": pushers("alice")},
    )


def test_a_type_without_a_path_is_asked_about_where_it_is(owned: OwnedFleet) -> None:
    chain(owned)
    owned.push("carol", {f"{R}/m/gold.yaml": kind("gold")})
    owned.push("alice", {f"{R}/m/n/kid/workspace.yaml": of_type("gold")})
    assert "unable to use workspace type root:m:gold: missing verb='use'" in owned.held()["root:m:n:kid"][0]
    owned.push("alice", {f"{R}/m/n/gold.yaml": kind("gold"), f"{R}/m/n/kid/workspace.yaml": f"{of_type('gold')}\n"})
    assert owned.held() == {}
    assert owned.record("root:m:n:kid").type == "root:m:n:gold"


def test_the_default_of_the_parents_type_is_asked_about(owned: OwnedFleet) -> None:
    chain(owned)
    gold = {
        f"{R}/m/gold.yaml": kind("gold"),
        f"{R}/m/top.yaml": kind("top", "{defaultChildWorkspaceType: {name: gold}}"),
    }
    owned.push("carol", gold)
    owned.push("carol", {f"{R}/m/o/workspace.yaml": of_type("top"), f"{R}/m/o/pushers.yaml": pushers("alice")})
    owned.push("alice", {f"{R}/m/o/kid/workspace.yaml": ""})
    assert "unable to use workspace type root:m:gold" in owned.held()["root:m:o:kid"][0]
    owned.push("carol", {f"{R}/m/use.yaml": granting("use", TYPES, "alice")})
    owned.push("alice", {f"{R}/m/o/kid/workspace.yaml": "# again\n"})
    assert owned.held() == {}
    assert owned.record("root:m:o:kid").type == "root:m:gold"


@pytest.mark.parametrize("before", ["own", "none", "default"])
def test_it_does_not_come_to_mean_another_type(
    owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet], before: str
) -> None:
    """The workspace waits, held for something else, until its type means one that nobody asked her about."""
    chain(owned)
    kid, bad = f"{R}/m/n/kid/workspace.yaml", f"{R}/m/n/kid/bad.yaml"
    own = {f"{R}/m/n/gold.yaml": kind("gold")} if before == "own" else {}
    owned.push("alice", own)
    owned.push("alice", {kid: "" if before == "default" else of_type("gold"), bad: "kind: ["})
    again = recovered(owned)
    if before == "default":
        owned.push("carol", {f"{R}/m/n/universal.yaml": kind("universal")})
        owned.push("carol", {f"{R}/m/gold.yaml": kind("gold")})
    else:
        owned.push("carol", {f"{R}/m/gold.yaml": kind("gold")})
        owned.push("alice", dict.fromkeys(own))
    owned.push("alice", {bad: None})
    again.load()
    assert_same(again, owned)
    if before == "default":
        assert owned.record("root:m:n:kid").type == "root:universal"
        return
    [error] = owned.held()["root:m:n:kid"]
    assert (
        "its type is root:m:gold by now, and was root:m:n:gold when it was pushed: nobody was asked about that" in error
    )
    owned.push("alice", {kid: of_type("gold", "root:m")})
    assert "unable to use workspace type root:m:gold" in owned.held()["root:m:n:kid"][0]
    owned.push("carol", {kid: of_type("gold", "root:m")}, f"Allow\n\nAllow-Push: {owned.repo.head}\n")
    assert owned.held() == {}
    assert owned.record("root:m:n:kid").type == "root:m:gold"


def test_a_type_that_is_taken_away_in_the_same_commit_is_not_what_is_meant(owned: OwnedFleet) -> None:
    chain(owned)
    owned.push("carol", {f"{R}/m/gold.yaml": kind("gold")})
    owned.push("alice", {f"{R}/m/n/gold.yaml": kind("gold")})
    owned.push("alice", {f"{R}/m/n/gold.yaml": None, f"{R}/m/n/kid/workspace.yaml": of_type("gold")})
    assert not owned.record("root:m:n:kid").served
    # Nor one that comes with what is held.
    files = {
        f"{R}/m/n/gold.yaml": kind("gold"),
        f"{R}/m/n/bad.yaml": "kind: [",
        f"{R}/m/n/other/workspace.yaml": of_type("gold"),
    }
    owned.push("alice", files)
    assert not owned.record("root:m:n:other").served


def test_an_export_that_another_offers_by_the_time_it_is_loaded(owned: OwnedFleet) -> None:
    """What counts is whose it is when the commit is taken, whatever it was when it was pushed."""
    allow(owned, "alice")
    gone = owned.pushed("carol", {f"{R}/b/bind.yaml": granting("bind", EXPORTS, "nobody", name="bind")})
    owned.pushed("alice", {f"{R}/a/take.yaml": binding("root:b")})
    assert gone
    owned.load()
    assert UNBOUND in owned.held()["root:a"][0]


def test_a_head_that_goes_back_and_comes_again_is_not_asked_about(owned: OwnedFleet) -> None:
    allow(owned, "alice")
    before = owned.repo.head
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b")})
    allow(owned, "nobody")
    head = owned.repo.head
    owned.repo.reset(before)
    owned.load()
    assert owned.fleet().error
    owned.repo.reset(head)
    owned.load()
    assert (owned.fleet().error, owned.held()) == ("", {})
    assert owned.find("root:a", BINDINGS, "widgets") is not None


@pytest.mark.parametrize("bad", [f"{HEAD}spec: {{serve: {{commit: {'1' * 40}}}}}\n", "kind: ["])
@pytest.mark.parametrize("pinned", [True, False])
def test_a_workspace_that_is_judged_by_what_it_is_served_with_loses_nothing_of_it(
    owned: OwnedFleet, bad: str, *, pinned: bool
) -> None:
    """Its own content is not looked at while its pin is none, or may be one."""
    mark = f"{R}/a/kid/workspace.yaml"
    owned.push("alice", {mark: "", f"{R}/a/kid/app.yaml": configmap()})
    if pinned:
        owned.push("alice", {mark: f"{HEAD}spec: {{serve: {{commit: {owned.repo.head}}}}}\n"})
    owned.push("alice", {f"{R}/a/kid/take.yaml": binding("root:b")})
    owned.push("alice", {mark: bad})
    assert "root:a:kid" in owned.held()
    owned.push("alice", {mark: ""})
    assert UNBOUND in owned.held()["root:a:kid"][0]
    owned.push("alice", {f"{R}/a/kid/take.yaml": None})
    assert owned.held() == {}


def test_what_nobody_might_make_does_not_come_to_mean_another_type(
    owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet]
) -> None:
    chain(owned)
    owned.push("alice", {f"{R}/m/n/gold.yaml": kind("gold")})
    owned.push("dave", {f"{R}/m/n/kid/workspace.yaml": of_type("gold")})
    did = owned.repo.head
    recovered(owned)
    owned.push("carol", {f"{R}/m/gold.yaml": kind("gold")})
    owned.push("alice", {f"{R}/m/n/gold.yaml": None})
    owned.push("alice", {}, f"Allow\n\nAllow-Push: {did}\n")
    assert "nobody was asked about that" in " ".join(owned.held()["root:m:n:kid"])
