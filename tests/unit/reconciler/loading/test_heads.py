"""Which heads are followed: a branch that goes back, or is rewritten, takes nothing away by itself."""

from __future__ import annotations

import pytest
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers, assert_same
from support.statusrepo import recording_in

from apiserver.model.commits import own
from reconciler.loading.heads import FOLLOW, HOLD, BranchSettings
from reconciler.loading.loader import Loaded

MORE = {f"{A}/more.yaml": configmap("more")}
OTHER = {f"{B}/other.yaml": configmap("other")}


def holding(fleet: LoadedFleet, **settings: object) -> None:
    """As a server that follows a URL."""
    fleet.loader = fleet.new_loader(BranchSettings(rewrites=HOLD, **settings))  # type: ignore[arg-type]


def is_held(fleet: LoadedFleet, loaded: Loaded) -> str:
    """The fleet is held, as a whole, for one reason; nothing was written but that."""
    [problem] = loaded.problems
    assert fleet.fleet().error == str(problem)
    assert fleet.written() == []
    assert loaded.steps == ()
    return str(problem)


@pytest.fixture
def held(fleet: LoadedFleet) -> LoadedFleet:
    """A commit on top of the first, served; branches that go back are held."""
    fleet.commit(MORE)
    holding(fleet)
    return fleet


# -- behind


def test_a_branch_behind_is_held_until_it_is_ahead_again(held: LoadedFleet) -> None:
    first, served = held.repo.commits
    held.repo.reset(first)
    said = is_held(held, held.load())
    assert said.startswith(f"main: went back to {first}, behind {served}, which is served; nothing is deleted for that")
    assert f"git revert {first:.12}..{served:.12}" in said
    assert f"treeplane up --take-head {first}" in said
    assert held.fleet().commit == own(served)
    # A replica that catches up.
    held.repo.reset(served)
    assert held.load().problems == ()
    assert held.fleet().error == ""
    assert held.written() == []


def test_one_that_goes_on_from_behind_was_rewritten(held: LoadedFleet) -> None:
    first, served = held.repo.commits
    said = is_held(held, held.commit(OTHER, parent=first))
    assert said.startswith(f"main: was rewritten: {held.repo.head} does not contain {served}, which is served")
    assert f"-m 'Allow-Rewrite: {served}'" in said


def test_a_merge_of_what_was_served_is_followed(held: LoadedFleet) -> None:
    first, served = held.repo.commits
    held.commit(OTHER, parent=first)
    held.repo.merge(MORE, served)
    uid = held.get("root:a", "configmaps", "more")["metadata"]["uid"]
    assert held.load().problems == ()
    assert held.fleet().error == ""
    assert held.get("root:a", "configmaps", "more")["metadata"]["uid"] == uid
    assert held.data("root:b", "other") == {"a": "b"}


def test_a_revert_goes_back(held: LoadedFleet) -> None:
    assert held.commit(dict.fromkeys(MORE)).problems == ()
    assert held.find("root:a", "configmaps", "more") is None


# -- rewritten


def test_a_rewrite_is_followed_once_a_commit_allows_it(held: LoadedFleet) -> None:
    first, served = held.repo.commits
    is_held(held, held.commit(OTHER, parent=first))
    held.repo.commit({}, f"Go on\n\nAllow-Rewrite: {served}\n")
    loaded = held.load()
    assert loaded.problems == ()
    assert held.fleet().error == ""
    assert held.find("root:a", "configmaps", "more") is None
    assert held.data("root:b", "other") == {"a": "b"}


@pytest.mark.parametrize("value", ["0123456789abcdef0123456789abcdef01234567", "", "main"])
def test_a_word_for_another_rewrite_does_not_count(held: LoadedFleet, value: str) -> None:
    held.repo.commit(OTHER, f"Go on\n\nAllow-Rewrite: {value}\n", parent=held.repo.commits[0])
    is_held(held, held.load())


def test_a_word_counts_once(held: LoadedFleet) -> None:
    """What was left does not come back by the same word, and another head needs its own."""
    first, served = held.repo.commits
    held.repo.commit(OTHER, f"Go on\n\nAllow-Rewrite: {served}\n", parent=first)
    held.load()
    second = held.repo.head
    is_held(held, held.commit(MORE, parent=first))
    held.repo.commit({}, f"And on\n\nAllow-Rewrite: {second}\n")
    assert held.load().problems == ()


def test_a_word_that_is_served_already_does_not_count(held: LoadedFleet) -> None:
    """One that was said ahead of time, in a commit that both heads contain."""
    first, served = held.repo.commits
    held.repo.commit({}, f"Ahead of time\n\nAllow-Rewrite: {served}\n")
    held.load()
    held.repo.commit({}, f"Take away\n\nAllow-Rewrite: {held.repo.head}\n", parent=held.repo.head)
    held.load()
    is_held(held, held.commit(OTHER, parent=first))


def test_the_head_that_a_start_names_is_taken(held: LoadedFleet) -> None:
    first, served = held.repo.commits
    held.repo.reset(first)
    is_held(held, held.load())
    holding(held, take=first)
    assert held.load().problems == ()
    assert held.find("root:a", "configmaps", "more") is None
    # Left where it is, it does nothing the second time.
    held.repo.reset(served)
    held.load()
    held.commit(OTHER)
    newest = held.repo.head
    held.repo.reset(served)
    is_held(held, held.load())
    assert held.fleet().commit == own(newest)


@pytest.mark.parametrize("take", ["", "a", "main", "HEAD"])
def test_nothing_short_of_an_id_names_a_head(held: LoadedFleet, take: str) -> None:
    held.repo.reset(held.repo.commits[0])
    holding(held, take=take or held.repo.head[:6])
    is_held(held, held.load())


# -- who says so


def test_the_served_commit_says_what_is_done(fleet: LoadedFleet) -> None:
    hold = TREEPLANE_YAML + "spec: {safety: {rewrites: Hold}}\n"
    follow = TREEPLANE_YAML + "spec: {safety: {rewrites: Follow}}\n"
    first = fleet.repo.head
    fleet.commit({**MORE, "treeplane.yaml": hold})
    is_held(fleet, fleet.commit({**OTHER, "treeplane.yaml": follow}, parent=first))
    fleet.repo.reset(fleet.repo.commits[1])
    fleet.load()
    fleet.commit({"treeplane.yaml": follow})
    holding(fleet)
    fleet.commit({**OTHER, "treeplane.yaml": hold}, parent=first)
    assert fleet.held() == {}
    assert fleet.fleet().error == ""


def test_on_this_machine_amending_is_daily_work(fleet: LoadedFleet) -> None:
    kept: list[tuple[str, str]] = []
    fleet.loader = fleet.new_loader(BranchSettings(rewrites=FOLLOW, keep=lambda left, head: kept.append((left, head))))
    first = fleet.repo.head
    fleet.commit(MORE)
    left = fleet.repo.head
    assert fleet.commit(OTHER, parent=first).problems == ()
    assert fleet.find("root:a", "configmaps", "more") is None
    assert kept == [(left, fleet.repo.head)]


def test_a_rewrite_does_not_allow_deletions(fleet: LoadedFleet) -> None:
    many = {f"{A}/many/{n:02}.yaml": configmap(f"m{n:02}") for n in range(12)}
    first = fleet.repo.head
    fleet.commit(many)
    fleet.commit(OTHER, parent=first)
    assert set(fleet.held()) == {"root:a"}
    assert fleet.data("root:a", "m03") == {"a": "b"}
    assert fleet.data("root:b", "other") == {"a": "b"}
    fleet.allow()
    assert fleet.held() == {}


# -- and recoveries


def test_a_held_head_is_held_for_a_recovery_too(held: LoadedFleet, another: Another) -> None:
    held.publish()
    held.repo.reset(held.repo.commits[0])
    held.load()
    new = another(held)
    holding(new)
    loaded = new.load(new.recorded())
    assert [str(p) for p in loaded.problems] == [held.fleet().error]
    assert_same(new, held)


def test_a_rewrite_that_was_followed_is_recovered_from(held: LoadedFleet, another: Another) -> None:
    first, served = held.repo.commits
    held.repo.commit(OTHER, f"Go on\n\nAllow-Rewrite: {served}\n", parent=first)
    held.load()
    assert_recovers(held, another)


# -- the status branch has one name


def test_a_commit_that_renames_the_status_branch_is_held_as_a_whole(fleet: LoadedFleet, another: Another) -> None:
    other = TREEPLANE_YAML + "spec: {statusBranch: elsewhere}\n"
    loaded = fleet.commit({"treeplane.yaml": other, **MORE})
    said = is_held(fleet, loaded)
    assert "spec.statusBranch is elsewhere, but this fleet's status is on treeplane/status" in said
    # Nor does it help to be the second commit, or to come with a recovery.
    is_held(fleet, fleet.commit(OTHER))
    fleet.publish()
    new = another(fleet)
    assert [str(p) for p in new.load(new.recorded()).problems] == [said]
    fleet.commit({"treeplane.yaml": TREEPLANE_YAML})
    assert fleet.fleet().error == ""
    assert fleet.data("root:a", "more") == {"a": "b"}


@pytest.mark.parametrize("before", ["", "https://git.example.org/status.git"])
@pytest.mark.parametrize("after", ["", "https://git.example.org/other.git"])
def test_a_commit_that_names_another_repository_for_it_is_held_as_a_whole(
    empty: LoadedFleet, before: str, after: str
) -> None:
    first, other = recording_in(before), recording_in(after)
    empty.begin({"treeplane.yaml": first})
    loaded = empty.commit({"treeplane.yaml": other, **MORE})
    if before == after:
        assert not loaded.problems
        return
    said = is_held(empty, loaded)
    assert f"spec.status.repository is {after or 'not there'}, but this fleet's status is in " in said
    assert (before or "the fleet's own repository") in said
    is_held(empty, empty.commit(OTHER))
    empty.commit({"treeplane.yaml": first})
    assert empty.fleet().error == ""
    assert empty.data("root:a", "more") == {"a": "b"}
