"""The hosted repository: real git, over TLS, as several users."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from apiserver.push import listen_push
from apiserver.registry.tree import FleetRecord, put_fleet


def commit(folder: Path, running: Any, name: str, content: str) -> None:
    (folder / name).write_text(content)
    running.git(folder, "add", name)
    assert running.git(folder, "commit", "-qm", f"write {name}").returncode == 0


@pytest.fixture
def clone(tmp_path: Path, running: Any) -> Path:
    """With one commit pushed."""
    done = running.git(tmp_path, "clone", running.repository, "fleet")
    assert done.returncode == 0, done.stderr
    commit(tmp_path / "fleet", running, "a.txt", "1")
    done = running.git(tmp_path / "fleet", "push", "origin", "HEAD:main")
    assert done.returncode == 0, done.stderr
    return tmp_path / "fleet"


def test_clone_push_fetch(tmp_path: Path, running: Any, clone: Path) -> None:
    assert running.git(tmp_path, "clone", running.repository, "second").returncode == 0
    commit(clone, running, "b.txt", "2")
    assert running.git(clone, "push", "origin", "HEAD:main").returncode == 0
    done = running.git(tmp_path / "second", "pull")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "second" / "b.txt").read_text() == "2"


def test_a_large_push_is_streamed(running: Any, clone: Path) -> None:
    # Larger than http.postBuffer, so chunked, and a gzipped negotiation afterwards.
    (clone / "large").write_bytes(os.urandom(3 * 1024 * 1024))
    running.git(clone, "add", "large")
    running.git(clone, "commit", "-qm", "large")
    done = running.git(clone, "push", "origin", "HEAD:main")
    assert done.returncode == 0, done.stderr
    done = running.git(clone.parent, "clone", running.repository, "again")
    assert done.returncode == 0, done.stderr
    assert (clone.parent / "again" / "large").read_bytes() == (clone / "large").read_bytes()


def test_a_long_negotiation_is_compressed(tmp_path: Path, running: Any, clone: Path) -> None:
    assert running.git(tmp_path, "clone", running.repository, "other").returncode == 0
    commit(tmp_path / "other", running, "o.txt", "other")
    assert running.git(tmp_path / "other", "push", "origin", "HEAD:main").returncode == 0
    # Sixty commits that the server lacks: git offers them all, in requests that it compresses.
    # Later than all else by their dates: git offers the newest first, and what both have would end the talk early.
    for number in range(60):
        date = {"GIT_COMMITTER_DATE": f"{2_000_000_000 + number} +0000"}
        assert running.git(clone, "commit", "--allow-empty", "-qm", str(number), environment=date).returncode == 0
    done = running.git(clone, "fetch", "origin", environment={"GIT_TRACE_CURL": "1", "GIT_TRACE_CURL_NO_DATA": "1"})
    assert done.returncode == 0, done.stderr
    assert "Content-Encoding: gzip" in done.stderr


def test_without_credentials_git_says_so(tmp_path: Path, running: Any) -> None:
    done = running.git(tmp_path, "clone", running.repository, "x", user="")
    assert done.returncode != 0
    assert "could not read Username" in done.stderr


def test_a_wrong_token_git_says_so(tmp_path: Path, running: Any) -> None:
    done = running.git(tmp_path, "clone", running.repository.replace("https://", "https://x:wrong@"), "x", user="")
    assert done.returncode != 0
    assert "remote: Unauthorized" in done.stderr
    assert "Authentication failed" in done.stderr


def test_a_token_as_password_and_as_bearer(tmp_path: Path, running: Any, clone: Path) -> None:
    running.allow("bob", "get")
    url = running.repository.replace("https://", "https://bob:bobs-token@")
    assert running.git(tmp_path, "clone", url, "x", user="").returncode == 0
    header = "http.extraHeader=Authorization: Bearer bobs-token"
    done = running.git(tmp_path, "-c", header, "clone", running.repository, "y", user="")
    assert done.returncode == 0, done.stderr


def test_fetch_is_get_and_push_is_update(tmp_path: Path, running: Any, clone: Path) -> None:
    done = running.git(tmp_path, "clone", running.repository, "x", user="bob")
    assert done.returncode != 0
    assert 'remote: forbidden: User "bob" cannot get path "/git/fleet.git"' in done.stderr
    running.allow("bob", "get")
    assert running.git(tmp_path, "clone", running.repository, "x", user="bob").returncode == 0
    commit(tmp_path / "x", running, "c.txt", "3")
    done = running.git(tmp_path / "x", "push", "origin", "HEAD:main", user="bob")
    assert 'remote: forbidden: User "bob" cannot update path "/git/fleet.git"' in done.stderr
    running.allow("bob", "update")
    done = running.git(tmp_path / "x", "push", "origin", "HEAD:main", user="bob")
    assert done.returncode == 0, done.stderr


def test_the_served_branch_is_neither_rewritten_nor_deleted(running: Any, clone: Path) -> None:
    running.git(clone, "commit", "--amend", "-m", "other")
    done = running.git(clone, "push", "--force", "origin", "HEAD:main")
    assert "remote: treeplane: refs/heads/main is the served branch and cannot be rewritten" in done.stderr
    done = running.git(clone, "push", "origin", ":main")
    assert done.returncode != 0
    done = running.git(clone, "push", "--force", "origin", "HEAD:side")
    assert done.returncode == 0, done.stderr
    assert running.git(clone, "push", "origin", ":side").returncode == 0


def test_the_status_branch_is_the_servers(running: Any, clone: Path) -> None:
    done = running.git(clone, "push", "origin", "HEAD:treeplane/status")
    assert "remote: treeplane: refs/heads/treeplane/status is written by the server alone" in done.stderr
    bare = str(running.settings.git_dir)
    assert running.git(clone, "push", bare, "HEAD:treeplane/status").returncode != 0


def test_a_push_rings(running: Any, clone: Path) -> None:
    rung = threading.Event()
    stop = listen_push(running.settings.data_dir, rung.set)
    try:
        running.git(clone, "fetch")
        commit(clone, running, "d.txt", "4")
        assert running.git(clone, "push", "origin", "HEAD:main").returncode == 0
        assert rung.wait(10)
    finally:
        stop()


def test_a_server_that_only_observes_takes_no_push(tmp_path: Path, running: Any, clone: Path) -> None:
    """It belongs to whoever holds the fleet; what is there may be read."""
    running.store.write(put_fleet(FleetRecord("fleet", loaded=True, holder="c0ffee/17"))).result(10)
    commit(clone, running, "b.txt", "2")
    done = running.git(clone, "push", "origin", "HEAD:main")
    assert done.returncode != 0
    assert "503" in done.stderr
    assert running.git(tmp_path, "clone", running.repository, "second").returncode == 0


def test_an_ended_history_of_the_status_branch_may_be_fetched(tmp_path: Path, running: Any, clone: Path) -> None:
    ref = "refs/treeplane/status/2026-01-01"
    done = running.git(tmp_path, "--git-dir", str(running.settings.git_dir), "update-ref", ref, "refs/heads/main")
    assert done.returncode == 0, done.stderr
    assert running.git(clone, "fetch", "origin", "refs/treeplane/status/*:refs/treeplane/status/*").returncode == 0
    assert running.git(clone, "rev-parse", ref).stdout == running.git(clone, "rev-parse", "HEAD").stdout
    refused = running.git(clone, "push", "origin", f"HEAD:{ref}x")
    assert refused.returncode != 0
    assert "hidden ref" in refused.stderr


# --- pushes of other kinds


def test_an_atomic_push_is_all_or_nothing(running: Any, clone: Path) -> None:
    commit(clone, running, "b.txt", "2")
    before = running.git(clone, "ls-remote", "origin").stdout
    done = running.git(clone, "push", "--atomic", "origin", "HEAD:main", "HEAD:refs/heads/treeplane/x")
    assert done.returncode != 0
    assert running.git(clone, "ls-remote", "origin").stdout == before
    done = running.git(clone, "push", "--atomic", "origin", "HEAD:main", "HEAD:refs/heads/x")
    assert done.returncode == 0, done.stderr


def test_tags_of_commits_trees_and_tags(running: Any, clone: Path) -> None:
    running.git(clone, "tag", "-a", "v1", "-m", "one")
    running.git(clone, "tag", "-a", "v2", "-m", "two", "v1")
    running.git(clone, "tag", "tree", "HEAD^{tree}")
    done = running.git(clone, "push", "origin", "--tags")
    assert done.returncode == 0, done.stderr
    assert running.git(clone, "push", "origin", ":refs/tags/v2", ":refs/tags/tree").returncode == 0
    assert "refs/tags/v1" in running.git(clone, "ls-remote", "--tags", "origin").stdout


def test_a_push_from_a_shallow_clone(tmp_path: Path, running: Any, clone: Path) -> None:
    """It lacks history, and the repository has it."""
    commit(clone, running, "b.txt", "2")
    assert running.git(clone, "push", "origin", "HEAD:main").returncode == 0
    assert running.git(tmp_path, "clone", "--depth=1", running.repository, "shallow").returncode == 0
    commit(tmp_path / "shallow", running, "c.txt", "3")
    done = running.git(tmp_path / "shallow", "push", "origin", "HEAD:main")
    assert done.returncode == 0, done.stderr


def test_a_history_that_nobody_has_whole_is_refused(tmp_path: Path, running: Any, clone: Path) -> None:
    other = tmp_path / "other"
    assert running.git(tmp_path, "init", "-q", "other").returncode == 0
    for number in range(2):
        commit(other, running, "a.txt", str(number))
    assert running.git(tmp_path, "clone", "-q", "--depth=1", f"file://{other}", "cut").returncode == 0
    done = running.git(tmp_path / "cut", "push", running.repository, "HEAD:refs/heads/cut")
    assert "shallow update not allowed" in done.stderr
    assert "refs/heads/cut" not in running.git(clone, "ls-remote", "origin").stdout


@pytest.mark.parametrize(
    ("option", "refused"),
    [("--push-option=x", "does not support push options"), ("--signed", "does not support --signed push")],
)
def test_what_is_not_taken_is_refused_by_name(running: Any, clone: Path, option: str, refused: str) -> None:
    commit(clone, running, "b.txt", "2")
    done = running.git(clone, "push", option, "origin", "HEAD:main")
    assert done.returncode != 0
    assert refused in done.stderr
