"""Refs that this process moves itself: as git would, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.repository import library, refmoving
from reconciler.repository.errors import RefMoved, RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree, move_ref, put_ref

Git = Callable[..., str]

REF = "refs/heads/main"


@pytest.fixture
def two(bare: Repository) -> tuple[str, str]:
    """Two commits; the ref is at the first one."""
    tree = edit_tree(bare, None, {"a": b"1"})
    first = commit_tree(bare, tree, [], "one", 1, REF)
    return first, commit_tree(bare, tree, [first], "two", 2)


def test_git_sees_what_was_moved(bare: Repository, git: Git, two: tuple[str, str]) -> None:
    first, second = two
    assert refmoving.move(bare, REF, second, first)
    assert (bare.ref(REF), git(bare.path, "rev-parse", "main")) == (second, second)
    assert refmoving.move(bare, REF, first, None)
    assert git(bare.path, "rev-parse", "main") == first
    assert git(bare.path, "fsck", "--strict", "--no-dangling") == ""
    assert not _locks(bare)


def test_both_its_text_and_its_name_are_flushed(
    bare: Repository, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(library, "flushes", lambda: True)
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_ino))
    assert refmoving.move(bare, REF, two[1], two[0])
    path = bare.git_dir / REF
    assert flushed == [path.stat().st_ino, path.parent.stat().st_ino]


def test_a_ref_that_is_elsewhere_stays(bare: Repository, two: tuple[str, str]) -> None:
    first, second = two
    assert not refmoving.move(bare, REF, first, second)
    with pytest.raises(RefMoved):
        move_ref(bare, REF, first, second)
    assert bare.ref(REF) == first
    assert not _locks(bare)


def test_a_commit_that_is_not_there_is_not_pointed_to(bare: Repository, two: tuple[str, str]) -> None:
    for move in (move_ref, lambda repo, ref, commit, _: put_ref(repo, ref, commit)):
        with pytest.raises((RepositoryUnreadable, *library.FAILURES)):
            move(bare, REF, "1" * 40, two[0])
    assert bare.ref(REF) == two[0]
    assert not _locks(bare)


@pytest.mark.parametrize("name", ["refs/heads/../../elsewhere", "refs/heads/main/../other", "../elsewhere"])
def test_what_is_no_name_of_a_ref_is_no_file_either(bare: Repository, two: tuple[str, str], name: str) -> None:
    """Names of branches may be a stranger's."""
    file = Path(os.path.normpath(bare.git_dir / name))
    file.write_text(f"{two[0]}\n")
    with pytest.raises(RefMoved):
        move_ref(bare, name, two[1], two[0])
    assert file.read_text() == f"{two[0]}\n"
    assert not _locks(bare)


def test_whoever_has_the_lock_moves_it(bare: Repository, two: tuple[str, str]) -> None:
    """A lock of somebody else's stays as it is."""
    first, second = two
    lock = bare.git_dir / f"{REF}.lock"
    lock.write_text("")
    with pytest.raises(RepositoryUnreadable, match="cannot be moved"):
        move_ref(bare, REF, second, first)
    assert (bare.ref(REF), lock.read_text()) == (first, "")


def test_what_fails_in_the_middle_changes_nothing(
    bare: Repository, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", refused)
        assert not refmoving.move(bare, REF, two[1], two[0])
    assert bare.ref(REF) == two[0]
    assert not _locks(bare)


@pytest.mark.parametrize("of", ["packed", "logged", "in a work tree", "symbolic", "new"])
def test_the_library_moves_what_needs_more_than_a_file(
    bare: Repository, git: Git, two: tuple[str, str], of: str
) -> None:
    first, second = two
    if of == "packed":
        git(bare.path, "pack-refs", "--all")
    elif of == "logged":
        git(bare.path, "config", "core.logAllRefUpdates", "true")
    elif of == "in a work tree":
        git(bare.path, "config", "core.bare", "false")
    elif of == "symbolic":
        git(bare.path, "symbolic-ref", "refs/heads/other", REF)
    ref = {"symbolic": "refs/heads/other", "new": "refs/heads/new"}.get(of, REF)
    again = Repository(bare.path)
    assert not refmoving.move(again, ref, second, first)
    assert again.ref(REF) == first
    if of not in ("symbolic", "new"):
        move_ref(again, ref, second, first)
        assert git(bare.path, "rev-parse", ref) == second
    if of == "logged":
        assert second in (bare.git_dir / "logs" / REF).read_text()
    assert not _locks(bare)


def _locks(repo: Repository) -> list[Path]:
    return [*repo.git_dir.rglob("*.lock")]
