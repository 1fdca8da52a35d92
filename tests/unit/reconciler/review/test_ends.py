"""What `A..B`, `A...B` and nothing stand for, in clones as people have them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap

from reconciler.commands.diff import compare
from reconciler.commands.failure import Failure
from reconciler.loading.changeset import ChangeKind
from reconciler.plan.pushedby import PUSH, PushedBy
from reconciler.repository import borrowed
from reconciler.review.result import ChangeReview
from reconciler.statusbranch import pushers


def git(directory: Path, *arguments: str) -> str:
    who = ["-c", "user.name=p", "-c", "user.email=p@example.com"]
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(["git", "-C", str(directory), *who, *arguments], env=env, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def clone(fleet: LoadedFleet, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "--quiet", str(fleet.repo.path), "clone")
    return tmp_path / "clone"


def changes(review: ChangeReview) -> dict[str, ChangeKind]:
    return {each.path: each.change for each in review.workspaces}


def fields(review: ChangeReview) -> list[tuple[str, object, object]]:
    return [tuple(change) for one in review.workspaces for each in one.objects for change in each.fields]


def test_who_pushed_stands_beside_the_author(fleet: LoadedFleet, clone: Path) -> None:
    """As far as the status branch says so; and not for what somebody claims of himself."""
    base = fleet.repo.head
    one = fleet.repo.commit({f"{A}/app.yaml": configmap(a="one")}, f"One\n\nPushed-By: {base} push mallory\n")
    pushers.note(fleet.store, {one: PushedBy("alice", PUSH)})
    fleet.mirror.refresh()
    fleet.load()
    fleet.publish()
    git(clone, "pull", "--quiet")
    git(clone, "commit", "--quiet", "--allow-empty", "-m", f"Two\n\nPushed-By: {one} push mallory")
    git(clone, "checkout", "--quiet", "-b", "side", base)
    git(clone, "commit", "--quiet", "--allow-empty", "-m", "Side")
    git(clone, "checkout", "--quiet", "main")
    git(clone, "merge", "--quiet", "-m", "Merge", "side")
    (clone / A / "app.yaml").write_text(configmap(a="not committed"))
    review = compare(clone, base)
    assert [(each.subject, each.author, str(each.by)) for each in review.brings] == [
        ("One", "Treeplane <treeplane@localhost>", "alice"),
        ("Two", "p <p@example.com>", "nobody known"),
        ("Merge", "p <p@example.com>", "nobody known"),
    ]
    assert [each.subject for each in compare(clone, f"{one}...side").brings] == ["Side"]
    assert [each.subject for each in compare(clone, "").brings] == ["Two", "Merge"]
    assert compare(clone, "main..main").brings == ()


def test_nothing_said_is_what_is_served_and_the_files_here(fleet: LoadedFleet, clone: Path) -> None:
    """Files that are staged, that are not, that are new, that are gone; and those that git ignores are nobody's."""
    assert not compare(clone, "").differs
    (clone / A / "app.yaml").write_text(configmap(a="staged"))
    git(clone, "add", "--all")
    (clone / B / "app.yaml").write_text(configmap(a="written"))
    (clone / B / "new.yaml").write_text(configmap("new"))
    (clone / "workspaces/root/app.yaml").unlink()
    (clone / ".git/info/exclude").write_text("ignored.yaml\n")
    (clone / B / "ignored.yaml").write_text("kind: [")
    index, status = (clone / ".git/index").read_bytes(), git(clone, "status", "--porcelain")
    objects = sorted(path.name for path in (clone / ".git/objects").rglob("*") if path.is_file())
    review = compare(clone / B, "")
    assert changes(review) == dict.fromkeys(("root", "root:a", "root:b"), ChangeKind.CONFIGURED)
    assert fields(review) == [("data.a", "b", "staged"), ("data.a", "b", "written")]
    assert "what is served of main" in review.base
    assert "the work tree" in review.target
    assert (clone / ".git/index").read_bytes() == index
    assert git(clone, "status", "--porcelain") == status
    assert sorted(path.name for path in (clone / ".git/objects").rglob("*") if path.is_file()) == objects


def test_what_was_served_since_is_merged(fleet: LoadedFleet, clone: Path) -> None:
    """A branch that is behind takes nothing back."""
    fleet.commit({f"{B}/app.yaml": configmap(a="served")})
    fleet.publish()
    git(clone, "fetch", "--quiet")
    (clone / A / "app.yaml").write_text(configmap(a="mine"))
    assert fields(compare(clone, "")) == [("data.a", "b", "mine")]
    git(clone, "commit", "--quiet", "--all", "-m", "mine")
    assert fields(compare(clone, "origin/main...HEAD")) == [("data.a", "b", "mine")]
    assert ("data.a", "served", "b") in fields(compare(clone, "origin/main..HEAD"))  # the one for the other
    assert fields(compare(clone, "HEAD~1")) == [("data.a", "b", "mine")], "one is compared with the files"


@pytest.mark.skipif(not borrowed.merges(), reason="git is older than 2.38")
def test_what_conflicts_says_so(fleet: LoadedFleet, clone: Path) -> None:
    fleet.commit({f"{A}/app.yaml": configmap(a="served")})
    fleet.publish()
    git(clone, "fetch", "--quiet")
    (clone / A / "app.yaml").write_text(configmap(a="mine"))
    review = compare(clone, "")
    assert fields(review) == [("data.a", "b", "mine")]
    assert any("conflicts" in note for note in review.notes)
    assert "merge base" in review.base


def test_a_commit_that_is_not_served_yet_is_what_it_is_compared_with(fleet: LoadedFleet, clone: Path) -> None:
    """The head is ahead of the server: what is recorded is taken to it first."""
    fleet.repo.commit({f"{A}/app.yaml": configmap(a="coming")})
    git(clone, "pull", "--quiet")
    (clone / A / "app.yaml").write_text(configmap(a="mine"))
    review = compare(clone, "origin/main")
    assert fields(review) == [("data.a", "coming", "mine")]
    assert not review.notes


def test_without_a_status_branch_it_says_what_it_does_not_know(fleet: LoadedFleet, clone: Path) -> None:
    git(clone, "update-ref", "-d", "refs/remotes/origin/treeplane/status")
    (clone / A / "app.yaml").write_text(configmap(a="mine"))
    review = compare(clone, "")
    assert fields(review) == [("data.a", "b", "mine")]
    assert any("no status branch" in note for note in review.notes)
    early = compare(clone, "HEAD")
    assert fields(early) == [("data.a", "b", "mine")]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--depth=1"], "fetch --unshallow"),
        (["--single-branch"], "remote set-branches origin '*'"),
        (["--filter=blob:none", "--no-checkout"], "--refetch"),
    ],
)
def test_clones_that_lack_something_are_refused(
    fleet: LoadedFleet, tmp_path: Path, options: list[str], remedy: str
) -> None:
    fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    git(fleet.repo.path, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", *options, f"file://{fleet.repo.path}", "lacking")
    with pytest.raises(Failure, match=remedy.replace("*", r"\*")) as refused:
        compare(tmp_path / "lacking", "HEAD..HEAD")
    assert refused.value.exit_code == 2
    before, _, command = str(refused.value.message).partition("complete it: ")
    assert before
    done = subprocess.run(["sh", "-c", command], env={**os.environ}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not compare(tmp_path / "lacking", "HEAD..HEAD").differs, "the command completes it"


def test_what_names_nothing(fleet: LoadedFleet, clone: Path, tmp_path: Path) -> None:
    for asked in ("nowhere..HEAD", "HEAD...nowhere", "--output=x..HEAD", "main^{tree}..HEAD"):
        with pytest.raises(Failure) as refused:
            compare(clone, asked)
        assert refused.value.exit_code == 2, asked
    with pytest.raises(Failure, match="is in no clone") as refused:
        compare(tmp_path, "")
    assert refused.value.exit_code == 2
    git(tmp_path, "init", "--quiet", "empty")
    with pytest.raises(Failure, match=r"names no commit|no commit yet"):
        compare(tmp_path / "empty", "")
    git(clone, "fetch", "--quiet", "origin", "main:refs/remotes/origin/other")
    assert not compare(clone, "other..HEAD").differs, "a branch that is only tracked has its short name"


def test_a_linked_work_tree(fleet: LoadedFleet, clone: Path, tmp_path: Path) -> None:
    git(clone, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    (tmp_path / "linked" / A / "app.yaml").write_text(configmap(a="linked"))
    assert fields(compare(tmp_path / "linked", "")) == [("data.a", "b", "linked")]
    assert not compare(clone, "").differs


def test_hooks_and_filters_of_a_stranger_do_not_run(fleet: LoadedFleet, clone: Path, tmp_path: Path) -> None:
    """What a branch says of filters names none that the user has not set up."""
    (clone / ".gitattributes").write_text("*.yaml filter=evil\n")
    (clone / A / "app.yaml").write_text(configmap(a="mine"))
    hook = clone / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    assert fields(compare(clone, "")) == [("data.a", "b", "mine")]
    assert not (tmp_path / "ran").exists()


def test_a_proposal_does_not_say_what_is_served(fleet: LoadedFleet, clone: Path) -> None:
    """Whoever may push a branch beside the served one can make one that looks like a status branch, and name it."""
    git(clone, "branch", "--quiet", "forged", "origin/treeplane/status")
    git(clone, "update-ref", "refs/remotes/origin/forged", "forged")
    (clone / "treeplane.yaml").write_text((clone / "treeplane.yaml").read_text() + "spec: {statusBranch: forged}\n")
    (clone / A / "app.yaml").write_text(configmap(a="mine"))
    git(clone, "commit", "--quiet", "--all", "-m", "forge")
    review = compare(clone, "origin/main...HEAD")
    [problem] = review.problems
    assert "spec.statusBranch is forged, but this fleet's status is on treeplane/status" in problem.message
    assert not review.notes
