"""The update hook, run by git itself on pushes by path."""

from pathlib import Path
from typing import Any

import pytest

from apiserver.endpoints.githooks import INTERNAL, install_hooks


@pytest.fixture
def pushed(tmp_path: Path, git: Any) -> Any:
    """`pushed(branch)`: a work tree whose commit is at `branch` of a bare repository beside it."""

    def make(branch: str) -> Path:
        git(tmp_path, "init", "--bare", "bare.git")
        install_hooks(tmp_path / "bare.git", branch, "treeplane/status")
        git(tmp_path, "init", "work")
        work = tmp_path / "work"
        git(work, "commit", "--allow-empty", "-m", "one")
        done = git(work, "push", "../bare.git", f"HEAD:refs/heads/{branch}")
        assert done.returncode == 0, done.stderr
        return work

    return make


@pytest.mark.parametrize("branch", ["main", "release/it's-1.0", "a$(b)"])
def test_the_served_branch_whatever_its_name(pushed: Any, git: Any, branch: str) -> None:
    work = pushed(branch)
    git(work, "commit", "--allow-empty", "-m", "two")
    assert git(work, "push", "../bare.git", f"HEAD:refs/heads/{branch}").returncode == 0
    git(work, "commit", "--allow-empty", "--amend", "-m", "other")
    done = git(work, "push", "-f", "../bare.git", f"HEAD:refs/heads/{branch}")
    assert done.returncode != 0
    assert "cannot be rewritten" in done.stderr
    done = git(work, "push", "../bare.git", f":refs/heads/{branch}")
    # git itself refuses to delete the branch that HEAD names, before it asks the hook.
    assert ("deletion of the current branch" if branch == "main" else "cannot be deleted") in done.stderr


def test_the_servers_own_pushes_pass(pushed: Any, git: Any) -> None:
    work = pushed("main")
    target = "HEAD:refs/heads/treeplane/status"
    assert git(work, "push", "../bare.git", target).returncode != 0
    done = git(work, "push", "../bare.git", target, environment={INTERNAL: "1"})
    assert done.returncode == 0, done.stderr


def test_installing_again_changes_nothing(tmp_path: Path, git: Any) -> None:
    git(tmp_path, "init", "--bare", "bare.git")
    hook = tmp_path / "bare.git" / "hooks" / "update"
    install_hooks(tmp_path / "bare.git", "main", "treeplane/status")
    before = hook.stat()
    install_hooks(tmp_path / "bare.git", "main", "treeplane/status")
    assert hook.stat() == before
    install_hooks(tmp_path / "bare.git", "trunk", "treeplane/status")
    assert "refs/heads/trunk" in hook.read_text()
