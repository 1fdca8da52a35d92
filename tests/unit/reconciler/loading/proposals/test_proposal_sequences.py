"""What comes between a write and its answer: crashes, other people's pushes, a client that goes, too much of it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.commitfleet import MADE, a_configmap
from support.loadedfleet import A, configmap
from support.proposalfleet import ProposalFleet

from apiserver.admission.proposing import ProposalSink
from apiserver.model.commits import own
from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal
from apiserver.registry import rest, tree
from apiserver.registry.intents import Intent
from apiserver.registry.rest_options import WriteOptions
from reconciler.loading.edits import NotTogether
from reconciler.loading.proposals import ProposalBounds
from reconciler.loading.proposededits import ProposedEdits
from reconciler.loading.trial import NotTried, Trial
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree, move_ref

BRANCH = "treeplane/proposals/alice/root-a"
REF = f"refs/heads/{BRANCH}"
APP = f"{A}/app.yaml"


class CrashError(BaseException):
    """The process ends."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as made:
        yield made


def asked(fleet: ProposalFleet, count: int = 1) -> None:
    """Until so many writes wait."""
    there = threading.Event()
    stop = fleet.store.subscribe(there.set)
    while fleet.store.count(Internal.PROPOSED) < count:
        assert there.wait(10)
        there.clear()
    stop()


def pushed(fleet: ProposalFleet, files: dict[str, str | None], parent: str | None = None) -> str:
    """Somebody else puts a commit on the branch."""
    repo, head = Repository(fleet.repo.path), fleet.proposal()
    base = parent or head
    assert base is not None
    changes = {path: None if text is None else text.encode() for path, text in files.items()}
    tree_id = edit_tree(repo, repo.commit(base).tree, changes)
    return commit_tree(repo, tree_id, [base], "Theirs\n", ref=REF, expected=head)


def test_a_crash_between_the_branch_and_the_answer(
    idle: ProposalFleet, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threads.submit(idle.made, "root:a", "configmaps", a_configmap())
    asked(idle)

    def crash(*_: object) -> None:
        raise CrashError

    monkeypatch.setattr(idle.proposals, "_answer", crash)
    with pytest.raises(CrashError):
        idle.proposals.serve()
    head = idle.proposal()
    assert head is not None
    assert not waiting.done()
    idle.proposals = idle.new_proposals()
    assert idle.proposals.serve()
    assert BRANCH in waiting.result(10).warnings[0]
    assert idle.proposal() == head


def test_a_branch_that_somebody_deletes_begins_anew(fleet: ProposalFleet) -> None:
    fleet.made("root:a", "configmaps", a_configmap())
    move_ref(Repository(fleet.repo.path), REF, None, fleet.proposal())
    fleet.made("root:a", "configmaps", a_configmap("second"))
    assert [path.rpartition("/")[2] for path in fleet.proposed()] == ["second.yaml"]


def test_what_somebody_pushed_to_it_is_gone_on_with(fleet: ProposalFleet) -> None:
    fleet.made("root:a", "configmaps", a_configmap())
    theirs = pushed(fleet, {f"{A}/theirs.yaml": configmap("theirs")})
    fleet.made("root:a", "configmaps", a_configmap("second"))
    assert Repository(fleet.repo.path).is_ancestor(theirs, fleet.proposal() or "")
    assert len(fleet.proposed()) == 3


def test_an_object_that_somebody_moved_there_stays_where_it_is(fleet: ProposalFleet) -> None:
    fleet.made("root:a", "configmaps", a_configmap())
    moved = f"{A}/moved.yaml"
    pushed(fleet, {MADE: None, moved: fleet.proposed()[MADE]})
    fleet.made("root:a", "configmaps", a_configmap(a="again"))
    assert fleet.proposed().keys() == {moved}
    assert "again" in (fleet.proposed()[moved] or "")


def test_one_that_was_reset_to_an_older_head_is_rebased(fleet: ProposalFleet) -> None:
    old = fleet.repo.head
    fleet.commit({f"{A}/more.yaml": configmap("more")})
    fleet.made("root:a", "configmaps", a_configmap())
    pushed(fleet, {f"{A}/theirs.yaml": configmap("theirs")}, parent=old)
    fleet.made("root:a", "configmaps", a_configmap("second"))
    assert [path.rpartition("/")[2] for path in fleet.proposed()] == ["second.yaml", "theirs.yaml"]


def test_another_history_is_left_alone(fleet: ProposalFleet) -> None:
    repo = Repository(fleet.repo.path)
    other = commit_tree(repo, repo.commit(fleet.repo.head).tree, [], "Other\n", ref=REF)
    with pytest.raises(StatusError) as told:
        fleet.made("root:a", "configmaps", a_configmap())
    assert told.value.code == 409
    assert "has nothing in common" in told.value.message
    assert fleet.proposal() == other


def test_a_push_in_between_is_built_on(fleet: ProposalFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.made("root:a", "configmaps", a_configmap())
    publish = fleet.branches.publish

    def late(name: str, commit: str, expected: str | None) -> None:
        monkeypatch.setattr(fleet.branches, "publish", publish)
        pushed(fleet, {f"{A}/theirs.yaml": configmap("theirs")})
        publish(name, commit, expected)

    monkeypatch.setattr(fleet.branches, "publish", late)
    fleet.made("root:a", "configmaps", a_configmap("second"))
    assert len(fleet.proposed()) == 3


def test_a_branch_that_is_pushed_to_without_an_end(fleet: ProposalFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    publish, count = fleet.branches.publish, iter(range(100))

    def late(name: str, commit: str, expected: str | None) -> None:
        pushed(fleet, {f"{A}/theirs{next(count)}.yaml": "# nothing\n"}, parent=fleet.proposal() or fleet.repo.head)
        publish(name, commit, expected)

    monkeypatch.setattr(fleet.branches, "publish", late)
    with pytest.raises(StatusError, match="pushed to so often") as told:
        fleet.made("root:a", "configmaps", a_configmap())
    assert told.value.code == 503


def test_what_a_client_took_back_is_on_no_branch(idle: ProposalFleet, threads: ThreadPoolExecutor) -> None:
    at = idle.at("root:a", "configmaps")
    assert isinstance(at.sink, ProposalSink)
    gone = threads.submit(rest.create, at, "default", a_configmap("gone"), WriteOptions("test"))
    asked(idle)
    stays = threads.submit(idle.made, "root:a", "configmaps", a_configmap("stays"))
    asked(idle, 2)
    make = idle.proposals._bench.make

    def leaving(*arguments: Any) -> Any:
        made = make(*arguments)
        at.sink.waiter.leave()  # type: ignore[union-attr]
        with pytest.raises(StatusError):
            gone.result(10)
        return made

    idle.proposals._bench.make = leaving  # type: ignore[method-assign]
    idle.proposals.serve()
    assert stays.result(10).created
    assert [path.rpartition("/")[2] for path in idle.proposed()] == ["stays.yaml"]


def test_what_waits_together_is_one_commit_and_the_bad_is_refused_alone(
    idle: ProposalFleet, threads: ThreadPoolExecutor
) -> None:
    idle.commit({f"{A}/shop.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
                 f"{A}/inside.yaml": configmap("inside", "shop")})  # fmt: skip
    good = [threads.submit(idle.made, "root:a", "configmaps", a_configmap(f"c{n}")) for n in range(4)]
    bad = threads.submit(idle.deleted, "root:a", "namespaces", "shop")
    asked(idle, 5)
    idle.proposals.serve()
    assert all(each.result(10).created for each in good)
    with pytest.raises(StatusError) as told:
        bad.result(10)
    assert told.value.code == 422
    assert len(idle.proposed()) == 4
    idle.merge()
    more = [threads.submit(idle.made, "root:a", "configmaps", a_configmap(f"d{n}")) for n in range(3)]
    asked(idle, 3)
    idle.proposals.serve()
    assert [each.result(10).created for each in more] == [True] * 3
    assert idle.subjects() == ["alice: Propose to write 3 objects in root:a"]


def test_what_is_in_the_way_of_another_is_a_commit_before_it(
    idle: ProposalFleet, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    added, add = list[str](), ProposedEdits.add

    def obstructed(self: ProposedEdits, intent: Intent) -> bool:
        if self.draft.files:
            raise NotTogether
        added.append(intent.key.name)
        return add(self, intent)

    monkeypatch.setattr(ProposedEdits, "add", obstructed)
    writes = [threads.submit(idle.made, "root:a", "configmaps", a_configmap(f"c{n}")) for n in range(3)]
    asked(idle, 3)
    idle.proposals.serve()
    assert all(each.result(10).created for each in writes)
    assert sorted(added) == ["c0", "c1", "c2"]
    assert len(idle.subjects()) == 3


def test_it_waits_for_a_commit_that_is_being_loaded(idle: ProposalFleet, threads: ThreadPoolExecutor) -> None:
    waiting = threads.submit(idle.made, "root:a", "configmaps", a_configmap())
    asked(idle)
    record = idle.fleet()
    idle.store.write(tree.put_fleet(replace(record, arriving=(own(idle.repo.head),)))).result()
    assert not idle.proposals.serve()
    assert not waiting.done()
    idle.store.write(tree.put_fleet(record)).result()
    assert idle.proposals.serve()
    assert waiting.result(10).created


def test_what_cannot_be_judged_in_time_is_put_there_and_says_so(
    fleet: ProposalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise NotTried("it takes longer than is waited for")

    monkeypatch.setattr(Trial, "run", run)
    outcome = fleet.made("root:a", "configmaps", a_configmap())
    assert outcome.warnings[0].endswith("; it was not judged: it takes longer than is waited for")
    assert fleet.proposed().keys() == {MADE}


def test_a_fleet_that_is_held_as_a_whole_takes_none(fleet: ProposalFleet) -> None:
    fleet.commit({"treeplane.yaml": "kind: ["})
    with pytest.raises(StatusError, match="the fleet is held") as told:
        fleet.made("root:a", "configmaps", a_configmap())
    assert told.value.code == 503


def test_a_branch_that_a_work_tree_has_checked_out_is_not_moved(fleet: ProposalFleet, tmp_path: Path) -> None:
    fleet.made("root:a", "configmaps", a_configmap())
    where = ("git", "-C", str(fleet.repo.path), "worktree", "add", "-q", str(tmp_path / "w"), BRANCH)
    subprocess.run(where, check=True)
    with pytest.raises(StatusError, match="checked out in") as told:
        fleet.made("root:a", "configmaps", a_configmap("second"))
    assert told.value.code == 503


def test_a_workspace_that_is_pinned_takes_none(fleet: ProposalFleet) -> None:
    pin = f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {{serve: {{commit: {fleet.repo.head}}}}}\n"
    fleet.commit({f"{A}/workspace.yaml": pin})
    with pytest.raises(StatusError) as told:
        fleet.patched("root:a", "configmaps", "app", data={"a": "c"})
    assert told.value.code == 403
    assert "it is pinned" in told.value.message
    assert fleet.branches_there() == []


def test_what_is_protected_goes_by_who_proposes_that(fleet: ProposalFleet) -> None:
    """As with `writes: Commit`: a DELETE is its user's word, also once it is rebased."""
    protected = "{name: dear, annotations: {treeplane.dev/protected: 'true'}}"
    fleet.commit({f"{A}/dear.yaml": configmap("dear").replace("{name: dear}", protected)})
    with pytest.raises(StatusError, match="proposed on branch"):
        fleet.deleted("root:a", "configmaps", "dear")
    head = fleet.proposal()
    assert "\nAllow-Delete: " in Repository(fleet.repo.path).commit(head or "").message
    fleet.commit({f"{A}/more.yaml": configmap("more")})
    fleet.made("root:a", "configmaps", a_configmap())
    fleet.merge()
    assert fleet.held() == {}
    assert fleet.find("root:a", "configmaps", "dear") is None


@pytest.fixture
def bound(idle: ProposalFleet) -> Callable[..., ProposalFleet]:
    """The fleet, served within bounds."""

    def begin(**bounds: int) -> ProposalFleet:
        idle.bounds = ProposalBounds(**bounds)
        idle.proposals = idle.new_proposals()
        idle.serve()
        return idle

    return begin


def test_a_user_has_so_many_branches(bound: Callable[..., ProposalFleet]) -> None:
    fleet = bound(branches=1)
    fleet.made("root:a", "configmaps", a_configmap())
    with pytest.raises(StatusError, match="user alice has 1 open proposals") as told:
        fleet.made("root:b", "configmaps", a_configmap())
    assert told.value.code == 403
    fleet.made("root:a", "configmaps", a_configmap("second"))
    fleet.made("root:b", "configmaps", a_configmap(), user="bob")


def test_a_workspace_has_so_many_whoever_makes_them(bound: Callable[..., ProposalFleet]) -> None:
    """Who may make ServiceAccounts has many users."""
    fleet = bound(in_workspace=2)
    for user in ("ann", "bob"):
        fleet.made("root:a", "configmaps", a_configmap(), user=user)
    with pytest.raises(StatusError, match="this workspace has 2 open proposals"):
        fleet.made("root:a", "configmaps", a_configmap(), user="eve")
    fleet.made("root:b", "configmaps", a_configmap(), user="eve")


def test_a_user_proposes_so_often(bound: Callable[..., ProposalFleet]) -> None:
    fleet = bound(rate=2)
    for name in ("c1", "c2"):
        fleet.made("root:a", "configmaps", a_configmap(name))
    with pytest.raises(StatusError) as told:
        fleet.made("root:a", "configmaps", a_configmap("c3"))
    assert (told.value.code, told.value.reason) == (429, "TooManyRequests")
    fleet.made("root:a", "configmaps", a_configmap("c3"), user="bob")


def test_for_a_workspace_so_often_whoever_does(bound: Callable[..., ProposalFleet]) -> None:
    fleet = bound(rate_in_workspace=2)
    for user in ("ann", "bob"):
        fleet.made("root:a", "configmaps", a_configmap(), user=user)
    with pytest.raises(StatusError, match="too many proposals"):
        fleet.made("root:a", "configmaps", a_configmap(), user="eve")
    fleet.made("root:b", "configmaps", a_configmap(), user="eve")


def test_a_source_that_is_a_url_is_pushed_to(idle: ProposalFleet, tmp_path: Path) -> None:
    """Also when it was rebased, and when it was merged and deleted there."""
    (tmp_path / "url").mkdir()
    idle.mirror = Mirror(tmp_path / "url", f"file://{idle.repo.path}", "main", "treeplane/status")
    idle.mirror.refresh()
    idle.new_committer()
    idle.proposals = idle.new_proposals()
    idle.serve()
    idle.made("root:a", "configmaps", a_configmap())
    first = idle.proposal()
    idle.repo.commit({f"{A}/more.yaml": configmap("more")})
    idle.mirror.refresh()
    idle.load()
    idle.made("root:a", "configmaps", a_configmap("second"))
    assert not Repository(idle.repo.path).is_ancestor(first or "", idle.proposal() or "")
    assert len(idle.proposed()) == 2
    idle.repo.merge({**idle.proposed()}, idle.proposal() or "")
    move_ref(Repository(idle.repo.path), REF, None, idle.proposal())
    idle.mirror.refresh()
    idle.load()
    idle.made("root:a", "configmaps", a_configmap("third"))
    assert [path.rpartition("/")[2] for path in idle.proposed()] == ["third.yaml"]
