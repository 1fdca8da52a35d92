"""Commits onto the desired branch: made first, published by compare-and-swap, never under a work tree's feet."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo
from support.signing import git_says_good, needs_ssh

from reconciler.repository.desired import Desired, signature
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RepositoryUnreadable
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import Batch
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import Verifier


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "fleet.git")
    made.commit({"a.yaml": "a: 1\n"})
    return made


def opened(tmp_path: Path, source: str) -> Desired:
    mirror = Mirror(tmp_path / "data", source, "main", "treeplane/status")
    mirror.refresh()
    return Desired(mirror)


@pytest.fixture(params=["path", "url"])
def desired(request: pytest.FixtureRequest, tmp_path: Path, repo: FleetRepo) -> Desired:
    return opened(tmp_path, str(repo.path) if request.param == "path" else f"file://{repo.path}")


def test_a_commit_is_the_branches_once_it_is_published(desired: Desired, repo: FleetRepo) -> None:
    before = repo.head
    made = desired.commit(before, {"b/c.yaml": b"b: 1\n", "a.yaml": None}, "alice", "Write\n")
    assert made is not None
    assert repo.head == before
    desired.publish(made, before)
    assert repo.head == made
    assert repo.files(made) == {"b/c.yaml": "b: 1\n"}
    commit = Repository(repo.path).commit(made)
    assert (commit.author, commit.parents) == ("alice <alice@localhost>", (before,))


def test_what_changes_nothing_is_no_commit(desired: Desired, repo: FleetRepo) -> None:
    assert desired.commit(repo.head, {"a.yaml": b"a: 1\n"}, "alice", "Write\n") is None


def test_a_branch_that_moved_on_is_not_overwritten(desired: Desired, repo: FleetRepo) -> None:
    before = repo.head
    made = desired.commit(before, {"b.yaml": b"b\n"}, "alice", "Write\n")
    assert made is not None
    theirs = repo.commit({"c.yaml": "c\n"})
    with pytest.raises(PushRejected):
        desired.publish(made, before)
    assert repo.head == theirs


def test_a_branch_that_a_work_tree_has_is_never_moved(tmp_path: Path, repo: FleetRepo) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "--quiet", str(repo.path), str(work)], check=True)
    desired, before = opened(tmp_path, str(work)), repo.head
    assert str(work) in desired.barred()
    made = desired.commit(before, {"b.yaml": b"b\n"}, "alice", "Write\n")
    assert made is not None
    with pytest.raises(BranchCheckedOut, match="checked out in"):
        desired.publish(made, before)
    assert Repository(work).ref("refs/heads/main") == before


def test_nor_one_that_only_a_linked_work_tree_has(tmp_path: Path, repo: FleetRepo) -> None:
    subprocess.run(["git", "-C", str(repo.path), "worktree", "add", "-q", str(tmp_path / "linked"), "main"], check=True)
    assert str(tmp_path / "linked") in opened(tmp_path, str(repo.path)).barred()


@pytest.mark.parametrize(
    ("user", "found"),
    [
        ("alice", ("alice", "alice@localhost")),
        ("alice@example.com", ("alice@example.com", "alice@example.com")),
        ("system:serviceaccount:a:b", ("system:serviceaccount:a:b", "system-serviceaccount-a-b@localhost")),
        ("Zoë <x>\nY", ("Zoë x Y", "Zo-x-Y@localhost")),
        ("<>", ("unknown", "unknown@localhost")),
    ],
)
def test_a_users_name_becomes_a_signature_that_git_takes(user: str, found: tuple[str, str]) -> None:
    assert signature(user) == found


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Nothing is written before it is set."""
    ready, write = threading.Event(), Batch.write

    def late(batch: Batch, repo: Repository) -> None:
        ready.wait()
        write(batch, repo)

    monkeypatch.setattr(Batch, "write", late)
    yield ready
    ready.set()


@pytest.mark.parametrize("files", [1, 100])
def test_a_commit_is_read_before_it_is_on_disk(
    tmp_path: Path, repo: FleetRepo, slow_disk: threading.Event, files: int
) -> None:
    mirror = Mirror(tmp_path / "data", str(repo.path), "main", "treeplane/status")
    mirror.refresh()
    desired, before, read = Desired(mirror), repo.head, mirror.repository
    made = desired.commit(before, {f"b/{n}.yaml": b"%d\n" % n for n in range(files)}, "alice", "Write\n")
    assert made is not None
    commit = read.commit(made)
    entry = read.entry_at(commit.tree, "b/0.yaml")
    assert entry is not None
    assert read.blob(entry.id) == b"0\n"
    assert not Repository(repo.path).has(made)
    slow_disk.set()
    desired.publish(made, before)
    assert Repository(repo.path).commit(made) == commit
    assert (read.blob_size(entry.id), read.committer(made), read.is_ancestor(before, made)) == (2, "Treeplane", True)
    subprocess.run(["git", "-C", str(repo.path), "fsck", "--strict"], check=True, capture_output=True)


def test_the_branch_waits_for_the_disk(tmp_path: Path, repo: FleetRepo, slow_disk: threading.Event) -> None:
    desired, before = opened(tmp_path, str(repo.path)), repo.head
    made = desired.commit(before, {"b.yaml": b"b\n"}, "alice", "Write\n")
    assert made is not None
    with ThreadPoolExecutor(1) as thread:
        published = thread.submit(desired.publish, made, before)
        assert not published.done()
        assert repo.head == before
        slow_disk.set()
    assert repo.head == made


def test_what_cannot_be_written_is_not_published(
    tmp_path: Path, repo: FleetRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    desired, before = opened(tmp_path, str(repo.path)), repo.head

    def full(*_: object) -> None:
        raise RepositoryUnreadable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Batch, "write", full)
        made = desired.commit(before, {"b.yaml": b"b\n"}, "alice", "Write\n")
        assert made is not None
        with pytest.raises(RepositoryUnreadable, match="full"):
            desired.publish(made, before)
    assert repo.head == before
    again = desired.commit(before, {"b.yaml": b"b\n"}, "alice", "Write\n")
    assert again is not None
    desired.publish(again, before)
    assert repo.head == again


@needs_ssh
def test_commits_are_signed_and_their_ids_follow_from_their_content(
    tmp_path: Path, repo: FleetRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = CommitKey.open(tmp_path / "keys")
    (tmp_path / "allowed").write_text(f"treeplane {key.public}\n")
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)
    made = set()
    for source in (str(repo.path), f"file://{repo.path}"):
        mirror = Mirror(tmp_path / str(len(made)), source, "main", "treeplane/status")
        mirror.refresh()
        for _ in range(2):
            desired = Desired(mirror, sign=key.sign)
            commit = desired.commit(repo.head, {"b": b"b"}, "josé", "Schreibe »b«\n")
            assert commit is not None
            desired.written()
            made.add(commit)
            assert git_says_good(mirror.repository.path, commit, tmp_path / "allowed")
            assert Verifier(key).signer(mirror.repository, commit, Signers()).ours
    assert len(made) == 1


def test_what_is_put_in_the_place_of_the_repository_is_written_to(tmp_path: Path, repo: FleetRepo) -> None:
    desired, before = opened(tmp_path, str(repo.path)), repo.head
    assert desired.commit(before, {"b.yaml": b"b\n"}, "alice", "Write\n")
    desired.written()
    shutil.copytree(repo.path, tmp_path / "copy")
    repo.path.rename(tmp_path / "old")
    (tmp_path / "copy").rename(repo.path)
    made = desired.commit(before, {"c.yaml": b"c\n"}, "alice", "Write\n")
    assert made is not None
    desired.publish(made, before)
    assert (Repository(repo.path).ref("refs/heads/main"), Repository(tmp_path / "old").has(made)) == (made, False)


def test_a_repository_that_is_repacked_is_read_anew(tmp_path: Path, repo: FleetRepo) -> None:
    desired = opened(tmp_path, str(repo.path))
    for number in range(3):
        before = repo.head
        made = desired.commit(before, {f"{number}.yaml": b"%d\n" % number}, "alice", "Write\n")
        assert made is not None
        desired.publish(made, before)
        subprocess.run(["git", "-C", str(repo.path), "repack", "-adq"], check=True)
    assert len(repo.files(repo.head)) == 4
