"""The repositories of sources: each by itself, found by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from apiserver.model.commits import CommitRef, own
from reconciler.repository import library, sourcestore
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories
from reconciler.repository.sourcerefs import source_name
from reconciler.repository.sourcestore import SourceStore
from reconciler.repository.write import commit_tree, edit_tree

ONE, OTHER = source_name("one", "https://example.com/a"), source_name("other", "https://example.com/a")


def commit_in(repo: Repository, text: str) -> str:
    return commit_tree(repo, edit_tree(repo, None, {"a.yaml": text.encode()}), [], "a\n", 1)


def test_a_commit_is_read_from_the_repository_of_its_name(tmp_path: Path) -> None:
    library.create(tmp_path / "own")
    repositories = Repositories(Repository(tmp_path / "own"), tmp_path / "sources")
    assert repositories.sources is not None
    first = commit_in(repositories.sources.make(ONE), "first")
    second = commit_in(repositories.sources.make(OTHER), "second")
    assert repositories.of(own(first)) is repositories.own
    assert repositories.of(CommitRef(ONE, first)).has(first)
    assert not repositories.of(CommitRef(OTHER, second)).has(first)
    assert not repositories.own.has(first)


@pytest.mark.parametrize("name", ["", "..", "own", "../own", "s" * 22 + "x", ONE.upper(), f"{ONE}.new"])
def test_no_other_name_is_a_repository(tmp_path: Path, name: str) -> None:
    store = SourceStore(tmp_path / "sources")
    for path in (store.directory / name, store.directory / f"{ONE}.new"):
        path.mkdir(parents=True, exist_ok=True)
        library.create(path)
    assert store.open(name) is None
    assert store.names() == set()


def test_one_that_nobody_has_is_told_by_its_name(tmp_path: Path) -> None:
    library.create(tmp_path / "own")
    for sources in (None, tmp_path / "sources"):
        with pytest.raises(RepositoryUnreadable, match=f"repository {ONE}, which this fleet does not have"):
            Repositories(Repository(tmp_path / "own"), sources).of(CommitRef(ONE, "a" * 40))


def test_nobody_else_may_look_into_them(tmp_path: Path) -> None:
    store = SourceStore(tmp_path / "sources")
    store.make(ONE)
    assert [path.stat().st_mode & 0o777 for path in (store.directory, store.directory / ONE)] == [0o700, 0o700]


def test_one_that_is_removed_and_made_anew_is_another(tmp_path: Path) -> None:
    store = SourceStore(tmp_path / "sources")
    commit = commit_in(store.make(ONE), "first")
    store.remove(ONE)
    assert store.open(ONE) is None
    assert not store.make(ONE).has(commit)


def test_only_so_many_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sourcestore, "_OPEN", 2)
    store = SourceStore(tmp_path / "sources")
    names = [source_name(str(number), "") for number in range(4)]
    commits = [commit_in(store.make(name), name) for name in names]
    assert len(store._open) == 2
    for name, commit in zip(names, commits, strict=True):
        found = store.open(name)
        assert found is not None and found.has(commit)


def test_what_a_process_left_that_was_killed_goes(tmp_path: Path) -> None:
    store = SourceStore(tmp_path / "sources")
    commit = commit_in(store.make(ONE), "first")
    for left in (f"{OTHER}.new", f"{OTHER}.going"):
        library.create(store.directory / left)
    here = store.directory / ONE
    (here / "objects" / "tmp_objdir-incoming-abc" / "pack").mkdir(parents=True)
    loose = next(here.glob("objects/??"))
    for left in (
        "tmpabc",
        "objects/pack/tmp_pack_abc",
        "objects/pack/.tmp-1-pack-abc.pack",
        f"objects/{loose.name}/tmp_obj",
    ):
        (here / left).write_text("half")
    (here / "refs" / "treeplane" / "source").mkdir(parents=True)
    (here / "refs" / "treeplane" / "source" / "main.lock").write_text("")
    store.clear()
    assert [path.name for path in store.directory.iterdir()] == [ONE]
    assert not [path for path in here.rglob("*") if "tmp" in path.name or path.suffix == ".lock"]
    assert store.make(ONE).has(commit)


def test_what_is_made_anew_under_a_name_is_not_taken_for_what_was_there(tmp_path: Path) -> None:
    """The disk gives the number of a directory that went to the next one that is made, unless somebody has it open."""
    store = SourceStore(tmp_path / "sources")
    made, path = store.make(ONE), store.directory / ONE
    number = path.stat().st_ino
    shutil.rmtree(path)
    for _ in range(50):
        path.mkdir()
        assert path.stat().st_ino != number and not made.is_there()
        path.rmdir()
    again = store.make(ONE)
    assert again is not made and again.has(commit_in(again, "a"))
