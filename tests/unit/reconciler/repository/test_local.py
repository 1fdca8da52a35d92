"""A source on this machine: it is kept open, and whatever stands under its name is what is read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.repository import library
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.local import Local
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree

Git = Callable[..., str]

MAIN = "refs/heads/main"


def test_it_is_opened_once(bare: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    real = library.open_directory
    monkeypatch.setattr(library, "open_directory", lambda path: opened.append(path) or real(path))
    local, expected = Local(str(bare.path)), None
    for when in range(3):
        expected = commit_tree(bare, edit_tree(bare, None, {"a": b"%d" % when}), [], "x", when, MAIN, expected)
        assert local.heads("main", "status") == (expected, None)
    assert len(opened) == 1


def test_what_takes_its_place_is_read(bare: Repository, git: Git, tmp_path: Path) -> None:
    local, first = Local(str(bare.path)), _committed(bare, b"1")
    assert local.desired("main") == first
    bare.path.rename(tmp_path / "away")
    with pytest.raises(RepositoryUnreadable, match="no repository"):
        local.desired("main")
    git(tmp_path, "init", "--quiet", "--bare", str(bare.path))
    second = _committed(Repository(bare.path), b"2")
    assert local.desired("main") == second
    shutil.rmtree(bare.path)
    (tmp_path / "away").rename(bare.path)
    assert local.desired("main") == first


def test_a_link_that_leads_elsewhere_is_followed(bare: Repository, git: Git, tmp_path: Path) -> None:
    other, link = tmp_path / "other.git", tmp_path / "link"
    git(tmp_path, "init", "--quiet", "--bare", str(other))
    first, second = _committed(bare, b"1"), _committed(Repository(other), b"2")
    link.symlink_to(bare.path)
    local = Local(str(link))
    assert local.desired("main") == first
    link.unlink()
    link.symlink_to(other)
    assert local.desired("main") == second


def test_what_is_packed_away_is_let_go(bare: Repository, git: Git) -> None:
    """Refs and objects are found wherever git's programs put them."""
    local, first = Local(str(bare.path)), _committed(bare, b"1")
    assert local.desired("main") == first
    git(bare.path, "repack", "-adq")
    git(bare.path, "pack-refs", "--all")
    assert (local.desired("main"), local.open().commit(first).id) == (first, first)
    packs = [*(bare.path / "objects" / "pack").glob("*.pack")]
    second = commit_tree(bare, edit_tree(bare, None, {"a": b"2"}), [first], "two", 2, MAIN, first)
    git(bare.path, "repack", "-adq")
    assert not packs[0].exists()
    assert (local.desired("main"), local.open().commit(second).parents) == (second, (first,))


def _committed(repo: Repository, text: bytes) -> str:
    return commit_tree(repo, edit_tree(repo, None, {"a": text}), [], "one", 1, MAIN)
