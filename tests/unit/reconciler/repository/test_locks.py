"""Locks that a killed process left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pygit2
import pytest
from support.fleetrepo import FleetRepo

from reconciler.repository import locks
from reconciler.repository.desired import Desired
from reconciler.repository.mirror import Mirror

MAIN = "refs/heads/main"


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "fleet.git")
    made.commit({"a.yaml": "a: 1\n"})
    return made


def lock(repo: FleetRepo, text: str, age: float = 0) -> Path:
    file = repo.path / f"{MAIN}.lock"
    file.write_text(text)
    when = time.time() - age
    os.utime(file, (when, when))
    return file


def test_every_lock_of_the_mirror_is_a_former_selfs(repo: FleetRepo, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "data", str(repo.path), "main", "treeplane/status")
    mirror.keep_served(repo.head)
    left = mirror.path / "refs" / "treeplane" / "served.lock"
    left.touch()
    with pytest.raises(OSError, match="lock"):
        mirror.keep_served(repo.head)
    mirror.clear_locks()
    mirror.keep_served(repo.head)


def test_a_lock_with_a_commit_of_ours_is_ours(repo: FleetRepo, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "data", str(repo.path), "main", "treeplane/status")
    desired = Desired(mirror)
    made = desired.commit(repo.head, {"b.yaml": b"b\n"}, "alice", "Write\n")
    desired.written()
    left = lock(repo, f"{made}\n")
    locks.clear_own(repo.repo, [MAIN])
    assert not left.exists()


def test_one_with_somebody_elses_is_theirs(repo: FleetRepo) -> None:
    who = pygit2.Signature("somebody", "somebody@example.com", 1, 0)
    theirs = str(repo.repo.git.create_commit(None, who, who, "Push", repo.repo.commit(repo.head).tree, []))
    left = lock(repo, theirs, age=1000)
    locks.clear_own(repo.repo, [MAIN])
    assert left.exists()


def test_one_that_says_nothing_is_abandoned_after_a_while(repo: FleetRepo) -> None:
    left = lock(repo, "")
    locks.clear_own(repo.repo, [MAIN])
    assert left.exists()
    lock(repo, "", age=1000)
    locks.clear_own(repo.repo, [MAIN])
    assert not left.exists()


def test_who_records_clears_its_own_refs_while_another_loads(repo: FleetRepo, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "data", str(repo.path), "main", "treeplane/status")
    refs = mirror.path / "refs"
    (refs / "treeplane" / "status").mkdir(parents=True)
    ours = [refs / "treeplane" / "recorded.lock", refs / "treeplane" / "status" / "2026-01-01.lock"]
    theirs = [refs / "treeplane" / "served.lock", mirror.path / "packed-refs.lock", repo.path / f"{MAIN}.lock"]
    for each in (*ours, *theirs):
        each.touch()
    mirror.clear_status_locks()
    assert [each.exists() for each in (*ours, *theirs)] == [False, False, True, True, True]
