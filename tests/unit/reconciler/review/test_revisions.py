"""What a revision names, and what is said where it names nothing, or may mean several commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo

from reconciler.repository.write import move_ref
from reconciler.review.revisions import BadRange, resolve


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "fleet.git")
    made.commit({"a": "1"})
    made.commit({"a": "2"})
    return made


def test_what_names_one_commit(repo: FleetRepo) -> None:
    first, head = repo.commits
    move_ref(repo.repo, "refs/remotes/origin/other", first, None)
    subprocess.run(["git", "-C", str(repo.path), "tag", "main", head], check=True)
    for text, commit in ((head, head), (first[:7], first), ("main", head), ("main~1", first), ("other", first)):
        assert resolve(repo.repo, text) == commit


def test_what_names_none_says_what_to_do(repo: FleetRepo) -> None:
    for text in ("nothing", "", "-x", "main..main", "f" * 40, "\x1b[2J"):
        with pytest.raises(BadRange, match="names no commit here") as found:
            resolve(repo.repo, text)
        assert "git fetch" in found.value.hint


def test_a_branch_and_a_tag_of_one_name(repo: FleetRepo) -> None:
    subprocess.run(["git", "-C", str(repo.path), "tag", "main", repo.commits[0]], check=True)
    with pytest.raises(BadRange, match=r"main is a branch .* and a tag") as found:
        resolve(repo.repo, "main")
    assert found.value.hint == "say which is meant: refs/heads/main or refs/tags/main"
    assert resolve(repo.repo, "refs/tags/main") == repo.commits[0]


def test_digits_that_begin_several_ids(repo: FleetRepo) -> None:
    begun = set[str]()
    number = 0
    while True:
        made = repo.commit({"a": str(number)})
        if made[:4] in begun:
            break
        begun.add(made[:4])
        number += 1
    with pytest.raises(BadRange, match=f"{made[:4]} begins several ids: {made[:4]}") as found:
        resolve(repo.repo, made[:4])
    assert found.value.hint == "give more digits"
