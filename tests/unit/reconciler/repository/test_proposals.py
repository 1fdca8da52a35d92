"""Branches of proposals: on top of what is served, rebased while nobody has to decide, never anybody's loss."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo

from reconciler.repository import proposals
from reconciler.repository.borrowed import MergedTree
from reconciler.repository.errors import BranchCheckedOut, NotMerged, PushRejected, RepositoryUnreadable
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.proposals import ProposalBranches
from reconciler.repository.write import commit_tree, move_ref

NAME = "treeplane/proposals/ann/root-a"
LINES = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "fleet.git")
    made.commit({"a.txt": LINES, "b.txt": "b\n"})
    return made


@pytest.fixture(params=["path", "url"])
def mirror(request: pytest.FixtureRequest, tmp_path: Path, repo: FleetRepo) -> Mirror:
    made = Mirror(tmp_path / "data", str(repo.path) if request.param == "path" else f"file://{repo.path}", "main", "s")
    made.refresh()
    return made


@pytest.fixture
def branches(mirror: Mirror) -> ProposalBranches:
    return ProposalBranches(mirror, commits=4, carried=["Allow-Delete"])


def there(repo: FleetRepo, name: str = NAME) -> str | None:
    return Repository(repo.path).ref(f"refs/heads/{name}")


def propose(
    branches: ProposalBranches, served: str, files: dict[str, bytes | None], message: str = "Write\n", user: str = "ann"
) -> str:
    """What a write does, but for judging it; the branch's head then."""
    head = branches.head(NAME)
    ground = branches.ground(NAME, head, served, user)
    made = branches.commit(ground, files, user, message) or ground
    if made not in (head, served):
        branches.publish(NAME, made, head)
    return made


def test_a_proposal_is_a_branch_on_top_of_what_is_served(branches: ProposalBranches, repo: FleetRepo) -> None:
    assert branches.head(NAME) is None
    assert branches.names() == []
    first = propose(branches, repo.head, {"c.txt": b"c\n"})
    assert (there(repo), branches.names()) == (first, [NAME])
    second = propose(branches, repo.head, {"d.txt": b"d\n"})
    found = repo.repo.commit(second)
    assert (found.parents, found.author) == ((first,), "ann <ann@localhost>")
    assert repo.files(second) == {"a.txt": LINES, "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n"}


def test_the_same_again_is_no_commit(branches: ProposalBranches, repo: FleetRepo) -> None:
    first = propose(branches, repo.head, {"c.txt": b"c\n"})
    assert propose(branches, repo.head, {"c.txt": b"c\n"}) == first


def test_it_is_rebased_as_one_commit_while_that_is_clean(
    branches: ProposalBranches, mirror: Mirror, repo: FleetRepo
) -> None:
    propose(branches, repo.head, {"a.txt": LINES.replace("line 3\n", "line three\n").encode()}, "One\n")
    propose(branches, repo.head, {"c.txt": None, "b.txt": None}, "Two\n\nAllow-Delete: 1234\n")
    served = repo.commit({"a.txt": LINES.replace("line 17\n", "line seventeen\n"), "e.txt": "e\n"})
    mirror.refresh()
    made = propose(branches, served, {})
    found = repo.repo.commit(there(repo) or "")
    assert (found.id, found.parents) == (made, (served,))
    assert found.message == "Propose 2 changes\n\nOne\nTwo\n\nAllow-Delete: 1234\n"
    both = LINES.replace("line 3\n", "line three\n").replace("line 17\n", "line seventeen\n")
    assert repo.files(made) == {"a.txt": both, "e.txt": "e\n"}


def test_what_conflicts_is_told_with_what_to_do(branches: ProposalBranches, mirror: Mirror, repo: FleetRepo) -> None:
    head = propose(branches, repo.head, {"b.txt": b"mine\n"})
    served = repo.commit({"b.txt": "theirs\n"})
    mirror.refresh()
    with pytest.raises(NotMerged) as told:
        branches.ground(NAME, head, served, "ann")
    assert "conflicts with what is served in b.txt" in told.value.what
    assert f"git push origin --delete {NAME}" in told.value.hint
    assert there(repo) == head


@pytest.mark.parametrize("also", [{}, {"b.txt": b"mine\n"}], ids=["that alone", "and another"])
def test_what_is_proposed_of_one_file_is_made_of_no_other(
    branches: ProposalBranches, mirror: Mirror, repo: FleetRepo, also: dict[str, bytes | None]
) -> None:
    """The file went, and one that is much like it came: git's merge takes that for the same."""
    head = propose(branches, repo.head, {"a.txt": LINES.replace("line 3\n", "line three\n").encode(), **also})
    served = repo.commit({"a.txt": None, "z.txt": f"{LINES}another\n"})
    mirror.refresh()
    with pytest.raises(NotMerged) as told:
        branches.ground(NAME, head, served, "ann")
    assert "conflicts with what is served in a.txt, z.txt" in told.value.what
    assert there(repo) == head


def test_what_both_took_away_is_gone(branches: ProposalBranches, mirror: Mirror, repo: FleetRepo) -> None:
    propose(branches, repo.head, {"a.txt": None, "c.txt": b"c\n"})
    served = repo.commit({"a.txt": None, "z.txt": "z\n"})
    mirror.refresh()
    assert repo.files(propose(branches, served, {})).keys() == {"b.txt", "c.txt", "z.txt"}


def test_a_git_that_is_too_old_says_so(
    branches: ProposalBranches, mirror: Mirror, repo: FleetRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = propose(branches, repo.head, {"c.txt": b"c\n"})
    served = repo.commit({"b.txt": "theirs\n"})
    mirror.refresh()
    monkeypatch.setattr(proposals, "merged_tree", lambda *_: MergedTree(""))
    with pytest.raises(RepositoryUnreadable, match=r"git 2\.38"):
        branches.ground(NAME, head, served, "ann")


@pytest.mark.parametrize("how", ["fast-forward", "merge", "squash"])
def test_what_was_merged_begins_anew(branches: ProposalBranches, mirror: Mirror, repo: FleetRepo, how: str) -> None:
    head = propose(branches, repo.head, {"c.txt": b"c\n"})
    match how:
        case "fast-forward":
            move_ref(repo.repo, repo.ref, head, repo.head)
        case "merge":
            repo.commit({"d.txt": "d\n"})
            repo.merge({"c.txt": "c\n"}, head)
        case _:
            repo.commit({"c.txt": "c\n", "d.txt": "d\n"})
    mirror.refresh()
    assert branches.ground(NAME, branches.head(NAME), repo.head, "ann") == repo.head
    made = propose(branches, repo.head, {"e.txt": b"e\n"})
    assert repo.repo.commit(made).parents == (repo.head,)
    assert there(repo) == made


def test_many_commits_become_one(branches: ProposalBranches, repo: FleetRepo) -> None:
    for number in range(4):
        propose(branches, repo.head, {f"{number}.txt": b"x\n"}, f"Write {number}\n")
    assert len([*branches.repo.new_commits(there(repo) or "", repo.head)]) == 4
    made = propose(branches, repo.head, {"4.txt": b"x\n"})
    [_, before] = branches.repo.new_commits(made, repo.head)
    assert before.message == "Propose 4 changes\n\nWrite 0\nWrite 1\nWrite 2\nWrite 3\n"
    assert {f"{number}.txt" for number in range(5)} < repo.files(made).keys()


def test_what_people_push_to_it_is_gone_on_with_and_theirs(
    branches: ProposalBranches, mirror: Mirror, repo: FleetRepo
) -> None:
    head = propose(branches, repo.head, {"c.txt": b"c\n"}, "Mine\n")
    theirs = branches.commit(head, {"p.txt": b"p\n"}, "bob@example.org", "Theirs\n")
    assert theirs is not None
    mirror.push_branch(NAME, theirs, head)
    assert branches.ground(NAME, branches.head(NAME), repo.head, "ann") == theirs
    served = repo.commit({"d.txt": "d\n"})
    mirror.refresh()
    made = repo.repo.commit(propose(branches, served, {}))
    assert repo.files(made.id).keys() >= {"c.txt", "p.txt", "d.txt"}
    assert made.author == "ann <ann@localhost>"
    assert made.message.endswith("\nCo-authored-by: bob@example.org <bob@example.org>\n")


def test_a_branch_of_another_history_is_left_alone(branches: ProposalBranches, repo: FleetRepo) -> None:
    other = commit_tree(repo.repo, repo.repo.commit(repo.head).tree, [], "Other\n", ref=f"refs/heads/{NAME}")
    with pytest.raises(NotMerged, match="nothing in common"):
        branches.ground(NAME, branches.head(NAME), repo.head, "ann")
    assert there(repo) == other


def test_a_branch_that_moved_meanwhile_is_not_overwritten(
    branches: ProposalBranches, mirror: Mirror, repo: FleetRepo
) -> None:
    head = propose(branches, repo.head, {"c.txt": b"c\n"})
    mine, theirs = (branches.commit(head, {f"{who}.txt": b"x"}, who, "Write\n") for who in ("ann", "bob"))
    assert mine is not None
    assert theirs is not None
    mirror.push_branch(NAME, theirs, head)
    with pytest.raises(PushRejected):
        branches.publish(NAME, mine, head)
    assert there(repo) == theirs


def test_one_that_a_work_tree_has_checked_out_is_never_moved(tmp_path: Path, repo: FleetRepo) -> None:
    mirror = Mirror(tmp_path / "data", str(repo.path), "main", "s")
    mirror.refresh()
    branches = ProposalBranches(mirror)
    propose(branches, repo.head, {"c.txt": b"c\n"})
    subprocess.run(["git", "-C", str(repo.path), "worktree", "add", "-q", str(tmp_path / "w"), NAME], check=True)
    with pytest.raises(BranchCheckedOut):
        propose(branches, repo.head, {"d.txt": b"d\n"})


def test_another_server_that_has_the_branches_stops_it(branches: ProposalBranches, mirror: Mirror) -> None:
    def theirs() -> None:
        raise RepositoryUnreadable("another process")

    with pytest.raises(RepositoryUnreadable, match="another process"):
        ProposalBranches(mirror, theirs).publish(NAME, "0" * 40, None)
