"""Who may push to the branches of proposals: each user to his own, and who may push to root; git itself asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.auth.authn import Authenticator
from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import MASTERS, User
from apiserver.endpoints.git import GitEndpoint
from apiserver.endpoints.githooks import install_hooks
from apiserver.endpoints.pushhooks import ANYONES, PROPOSES, PUSHER
from apiserver.model.proposals import branch_of, spelled

ANNS = f"refs/heads/{branch_of('ann', 'root:a')}"
BOBS = f"refs/heads/{branch_of('bob', 'root:a')}"


@pytest.fixture
def work(tmp_path: Path, git: Any) -> Path:
    """A work tree with a commit, beside a bare repository with hooks."""
    git(tmp_path, "init", "--bare", "bare.git")
    install_hooks(tmp_path / "bare.git", "main", "treeplane/status")
    git(tmp_path, "init", "work")
    git(tmp_path / "work", "commit", "--allow-empty", "-m", "one")
    return tmp_path / "work"


def push(git: Any, work: Path, ref: str, proposes: str | None, *, source: str = "HEAD") -> Any:
    environment = {} if proposes is None else {PUSHER: "{}", PROPOSES: proposes}
    return git(work, "push", "--force", "../bare.git", f"{source}:{ref}", environment=environment)


@pytest.mark.parametrize(
    ("proposes", "ref", "taken"),
    [
        (spelled("ann"), ANNS, True),
        (spelled("ann"), BOBS, False),
        (spelled("an"), ANNS, False),
        (spelled("annie"), ANNS, False),
        ("", ANNS, False),
        ("*", ANNS, True),
        (None, ANNS, True),  # by a path
        (spelled("ann"), "refs/heads/treeplane/proposals/ann", False),
        (spelled("ann"), "refs/heads/treeplane/proposals/ann/a/b", False),
        (spelled("ann"), "refs/heads/treeplane/proposals/Ann/a", False),
        (spelled("ann"), "refs/heads/treeplane/proposals/ann/A", False),
        (spelled("ann"), "refs/heads/treeplane/Proposals/ann/a", False),
        (spelled("Ann"), f"refs/heads/{branch_of('Ann', 'root')}", True),
        ("*", "refs/heads/treeplane/other", False),
        ("*", "refs/heads/treeplane/status", False),
        ("ann/a' ; touch x; '", ANNS, False),
        ("?nn", ANNS, False),
    ],
)
def test_each_user_pushes_to_his_own(git: Any, work: Path, proposes: str | None, ref: str, taken: bool) -> None:
    done = push(git, work, ref, proposes)
    assert (done.returncode == 0) is taken, done.stderr
    there = git(work.parent / "bare.git", "for-each-ref", ref).stdout
    assert bool(there) is taken
    assert taken or "remote: treeplane: " in done.stderr


def test_whose_it_is_decides_of_a_rewrite_and_of_its_end(git: Any, work: Path) -> None:
    assert push(git, work, ANNS, spelled("ann")).returncode == 0
    git(work, "commit", "--allow-empty", "--amend", "-m", "other")
    for source in ("HEAD", ""):
        refused = push(git, work, ANNS, spelled("bob"), source=source)
        assert refused.returncode != 0
        assert "is another user's proposal: push to branches below treeplane/proposals/bob/" in refused.stderr
        assert push(git, work, ANNS, spelled("ann"), source=source).returncode == 0


@pytest.mark.parametrize("status", ["treeplane/proposals", "treeplane/proposals/ann/root-a", "Treeplane/Proposals/x"])
def test_a_status_branch_in_their_place_stays_the_servers(tmp_path: Path, git: Any, work: Path, status: str) -> None:
    install_hooks(tmp_path / "bare.git", "main", status)
    assert push(git, work, ANNS, "*").returncode != 0


def test_over_the_network_it_is_the_authenticated_user(running: Any, tmp_path: Path) -> None:
    for user in ("ann", "bob"):
        running.allow(user, "get")
        running.allow(user, "update")
    work = tmp_path / "fleet"
    assert running.git(tmp_path, "clone", running.repository, "fleet").returncode == 0
    assert running.git(work, "commit", "--allow-empty", "-qm", "x").returncode == 0
    forged = {PROPOSES: "*"}

    def pushed(user: str) -> bool:
        done = running.git(work, "push", "origin", f"HEAD:{ANNS}", user=user, environment=forged)
        return bool(done.returncode == 0)

    assert not pushed("bob")
    assert running.git(work, "push", "origin", f"HEAD:{BOBS}", user="bob").returncode == 0
    running.allow("bob", "push")
    assert pushed("bob")


def test_a_service_account_has_none(running: Any) -> None:
    """Its name is that of others in other workspaces."""
    authorizer = Authorizer(running.store)
    endpoint = GitEndpoint(None, Authenticator.__new__(Authenticator), authorizer)
    assert endpoint._proposes(User("system:serviceaccount:default:ci")) == ""
    assert endpoint._proposes(User("ann")) == "ann"
    assert endpoint._proposes(User("admin", (MASTERS,))) == ANYONES
