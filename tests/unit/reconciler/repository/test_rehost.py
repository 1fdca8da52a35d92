"""A clone of what was hosted becomes what is hosted, with all that it has and tracks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.repository.errors import DivergedStatus, RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.rehost import behind, rehost

Git = Callable[..., str]
STATUS = "treeplane/status"


@pytest.fixture
def second(tmp_path: Path, clone: Path, git: Git) -> Path:
    """A clone of `clone`, which has a status branch, a topic, a tag and an ended history."""
    git(clone, "branch", STATUS)
    git(clone, "branch", "topic")
    git(clone, "tag", "-am", "one", "v1")
    git(tmp_path, "clone", "-q", str(clone), "second")
    git(tmp_path / "second", "fetch", "-q", str(clone), "main:refs/treeplane/status/2026-01-01")
    return tmp_path / "second"


def refs(git: Git, path: Path) -> set[str]:
    return set(git(path, "for-each-ref", "--format=%(refname)").split())


def test_every_branch_that_it_tracks_is_there_again(tmp_path: Path, second: Path, git: Git) -> None:
    made = tmp_path / "data" / "fleet.git"
    made.parent.mkdir()
    before = refs(git, second)
    assert rehost(second, made, "main") == git(second, "rev-parse", "main")
    branches = {f"refs/heads/{name}" for name in ("main", STATUS, "topic")}
    assert refs(git, made) == branches | {"refs/tags/v1", "refs/treeplane/status/2026-01-01"}
    assert git(made, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert git(made, "fsck", "--full", "--strict") == ""
    assert refs(git, second) == before
    assert not behind(second, made, "main")
    git(second, "commit", "-q", "--allow-empty", "-m", "not pushed")
    assert behind(second, made, "main")


@pytest.mark.parametrize("ahead", ["own", "tracked"])
def test_of_what_it_has_and_tracks_the_newer_counts(
    tmp_path: Path, second: Path, clone: Path, git: Git, ahead: str
) -> None:
    there = second if ahead == "own" else clone
    git(there, "commit", "-q", "--allow-empty", "-m", "newer")
    git(second, "fetch", "-q")
    assert rehost(second, tmp_path / "fleet.git", "main") == git(there, "rev-parse", "main")


def test_what_went_apart_is_the_users_to_decide(tmp_path: Path, second: Path, clone: Path, git: Git) -> None:
    for each in (second, clone):
        git(each, "commit", "-q", "--allow-empty", "-m", str(each))
    git(second, "fetch", "-q")
    with pytest.raises(DivergedStatus, match="git branch -f main origin/main"):
        rehost(second, tmp_path / "fleet.git", "main")
    assert not (tmp_path / "fleet.git").exists()


def test_what_is_not_whole_or_not_there_is_refused(tmp_path: Path, clone: Path, git: Git) -> None:
    git(clone, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{clone}", "shallow")
    with pytest.raises(RepositoryUnreadable, match="fetch --unshallow"):
        rehost(tmp_path / "shallow", tmp_path / "fleet.git", "main")
    with pytest.raises(RepositoryUnreadable, match="no branch trunk"):
        rehost(clone, tmp_path / "fleet.git", "trunk")
    assert not (tmp_path / "fleet.git").exists()


def test_one_that_was_interrupted_is_made_anew(tmp_path: Path, second: Path) -> None:
    (tmp_path / "fleet.git.new" / "refs").mkdir(parents=True)
    rehost(second, tmp_path / "fleet.git", "main")
    assert Repository(tmp_path / "fleet.git").ref(f"refs/heads/{STATUS}") is not None
