"""Copies between two repositories, killed anywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.repository import write
from reconciler.repository.objects import Repository
from reconciler.repository.transfer import copy_commits
from reconciler.repository.write import commit_tree, edit_tree

Git = Callable[..., str]


class Killed(Exception):
    pass


def history(repo: Repository) -> str:
    """Two branches that grow and are merged: few objects, which are written one by one."""
    made: list[str] = []
    for number, parents in enumerate([[], [0], [0], [1, 2], [2, 3]]):
        tree = edit_tree(repo, None, {f"d/{number % 2}": str(number).encode()})
        made.append(commit_tree(repo, tree, [made[at] for at in parents], str(number), number))
    return made[-1]


@pytest.mark.parametrize("written", range(20))
def test_whoever_is_killed_in_the_middle_leaves_no_commit_without_what_it_needs(
    tmp_path: Path, bare: Repository, git: Git, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    head = history(bare)
    git(tmp_path, "init", "-q", "--bare", "other.git")
    other, left = Repository(tmp_path / "other.git"), [written]

    def killed(batch: write.Batch, repo: Repository) -> None:
        for kind, data in batch.objects.values():
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            repo.git.write(kind, data)

    with monkeypatch.context() as patched:
        patched.setattr(write.Batch, "write", killed)
        with pytest.raises(Killed):
            copy_commits(bare, other, head)
    copy_commits(bare, other, head)
    other.references.create("refs/heads/main", head)
    assert git(other.path, "rev-list", "--objects", "main") == git(bare.path, "rev-list", "--objects", head)
    assert copy_commits(bare, other, head) == 0
