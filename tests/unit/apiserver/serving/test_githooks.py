"""The hooks, run by git itself on pushes by path."""

from pathlib import Path
from typing import Any

import pytest

from apiserver.endpoints.githooks import install_hooks
from apiserver.endpoints.pushhooks import VERDICTS


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


SERVERS = [
    "refs/heads/treeplane/status", "refs/heads/treeplane/other", "refs/heads/treeplane", "refs/treeplane/served",
    "refs/heads/TreePlane/Status", "refs/heads/Treeplane", "refs/treeplane/keep/main/1",
]  # fmt: skip
NAMED = ["refs/heads/ops/state/now", "refs/heads/ops", "refs/heads/ops/state", "refs/heads/ops/state/now/x",
         "refs/heads/Ops/State/NOW", "refs/heads/oPs"]  # fmt: skip
OTHERS = ["refs/remotes/origin/main", "refs/remotes/origin/treeplane/status", "refs/replace/1234", "refs/meta/config",
          "refs/heads/MAIN", b"refs/heads/\xff".decode(errors="surrogateescape")]  # fmt: skip


@pytest.mark.parametrize("ref", [*SERVERS, *NAMED, *OTHERS])
@pytest.mark.parametrize("exists", [False, True])
def test_what_is_the_servers_is_neither_made_nor_changed_nor_deleted(
    pushed: Any, git: Any, tmp_path: Path, ref: str, exists: bool
) -> None:
    work, bare = pushed("main"), tmp_path / "bare.git"
    install_hooks(bare, "main", "ops/state/now")
    git(work, "commit", "--allow-empty", "-m", "two")
    if exists:
        assert git(bare, "update-ref", ref, "refs/heads/main").returncode == 0
    before = git(bare, "for-each-ref").stdout
    for source in ("HEAD", *([""] if exists else [])):
        done = git(work, "push", "--force", "../bare.git", f"{source}:{ref}")
        assert done.returncode != 0
        assert "remote: treeplane: " in done.stderr
        assert git(bare, "for-each-ref").stdout == before


def test_a_branch_in_the_way_of_the_status_branch_is_refused_with_the_rest_going_through(pushed: Any, git: Any) -> None:
    work = pushed("main")
    git(work, "commit", "--allow-empty", "-m", "two")
    done = git(work, "push", "../bare.git", "HEAD:refs/heads/treeplane", "HEAD:main", "HEAD:refs/tags/v1")
    assert done.returncode != 0
    there = git(work, "ls-remote", "../bare.git").stdout
    assert "refs/heads/treeplane" not in there
    assert there.count(git(work, "rev-parse", "HEAD").stdout.strip()) == 3  # HEAD, main, the tag


@pytest.mark.parametrize("ref", ["refs/heads/über", "refs/heads/opsx", "refs/heads/treeplanes", "refs/tags/treeplane",
                                 "refs/notes/commits", "refs/heads/a/treeplane/status"])  # fmt: skip
def test_all_else_is_the_users(pushed: Any, git: Any, tmp_path: Path, ref: str) -> None:
    work = pushed("main")
    install_hooks(tmp_path / "bare.git", "main", "ops/state/now")
    for source in ("HEAD", ""):
        done = git(work, "push", "../bare.git", f"{source}:{ref}")
        assert done.returncode == 0, done.stderr


def test_letters_that_a_file_system_takes_for_others_are_refused_there(pushed: Any, git: Any, tmp_path: Path) -> None:
    work = pushed("main")
    git(tmp_path / "bare.git", "config", "core.ignorecase", "true")
    done = git(work, "push", "../bare.git", "HEAD:refs/heads/treeplane/\u017ftatus")
    assert "use ASCII" in done.stderr


def test_no_replacement_makes_a_rewrite_look_like_progress(pushed: Any, git: Any, tmp_path: Path) -> None:
    """Even one that stands in the repository already."""
    work, bare = pushed("main"), tmp_path / "bare.git"
    old = git(work, "rev-parse", "HEAD").stdout.strip()
    git(work, "commit", "--allow-empty", "--amend", "-m", "other")
    git(work, "push", "../bare.git", "HEAD:refs/heads/side")
    new = git(work, "rev-parse", "HEAD").stdout.strip()
    assert git(bare, "replace", "--graft", new, old).returncode == 0
    assert git(bare, "merge-base", "--is-ancestor", old, new).returncode == 0
    done = git(work, "push", "-f", "../bare.git", "HEAD:main")
    assert "cannot be rewritten" in done.stderr


def test_the_environment_of_a_push_opens_nothing(pushed: Any, git: Any) -> None:
    work = pushed("main")
    for name in ("TREEPLANE_INTERNAL", "GIT_QUARANTINE_PATH"):
        done = git(work, "push", "../bare.git", "HEAD:refs/heads/treeplane/status", environment={name: "1"})
        assert done.returncode != 0


def test_installing_again_changes_nothing(tmp_path: Path, git: Any) -> None:
    git(tmp_path, "init", "--bare", "bare.git")
    hook = tmp_path / "bare.git" / "hooks" / "update"
    install_hooks(tmp_path / "bare.git", "main", "treeplane/status")
    before = hook.stat()
    install_hooks(tmp_path / "bare.git", "main", "treeplane/status")
    assert hook.stat() == before
    install_hooks(tmp_path / "bare.git", "trunk", "treeplane/status")
    assert "refs/heads/trunk" in hook.read_text()


def test_who_pushes_is_told_what_became_of_it(pushed: Any, git: Any, tmp_path: Path) -> None:
    work, bare = pushed("main"), tmp_path / "bare.git"
    (bare / VERDICTS).mkdir(parents=True)
    git(work, "commit", "--allow-empty", "-m", "two")
    head = git(work, "rev-parse", "HEAD").stdout.strip()
    (bare / VERDICTS / head).write_text("served\nit is served\n  and more\n")
    done = git(work, "push", "../bare.git", "HEAD:refs/heads/main")
    assert "remote: treeplane: it is served" in done.stderr
    assert "remote: treeplane:   and more" in done.stderr
    # Another branch is nobody's to judge.
    assert "treeplane:" not in git(work, "push", "../bare.git", "HEAD:refs/heads/other").stderr


def test_a_push_waits_for_no_server_that_is_not_there(pushed: Any, git: Any) -> None:
    work = pushed("main")
    git(work, "commit", "--allow-empty", "-m", "two")
    assert "treeplane:" not in git(work, "push", "../bare.git", "HEAD:refs/heads/main").stderr


def test_nor_long_for_one_that_takes_its_time(pushed: Any, git: Any, tmp_path: Path) -> None:
    work, bare = pushed("main"), tmp_path / "bare.git"
    (bare / VERDICTS).mkdir(parents=True)
    git(work, "commit", "--allow-empty", "-m", "two")
    done = git(work, "push", "../bare.git", "HEAD:refs/heads/main")
    assert done.returncode == 0
    assert "treeplane: not served yet" in done.stderr
