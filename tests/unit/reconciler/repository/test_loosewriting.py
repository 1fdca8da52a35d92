"""Objects in files of their own are what git makes of the same bytes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reconciler.repository import library
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.write import PACK_FROM, Batch, edit_tree

BLOB = 3


@pytest.fixture(params=[True, False], ids=["flushed", "not flushed"])
def repo(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    library.create(tmp_path / "bare.git")
    monkeypatch.setattr(library._Flushing, "on", request.param)
    return Repository(tmp_path / "bare.git")


def place(repo: Repository, name: str) -> Path:
    return repo.path / "objects" / name[:2] / name[2:]


def test_git_finds_them_in_order(repo: Repository) -> None:
    contents = [b"", b"a", b"x" * 100_000, bytes(range(256))]
    assert len(contents) + 1 < PACK_FROM, "with their directory"
    edit_tree(repo, None, {str(number): data for number, data in enumerate(contents)})
    subprocess.run(["git", "-C", str(repo.path), "fsck", "--full", "--strict"], check=True, capture_output=True)
    batch = Batch()
    names = [batch.add(BLOB, data) for data in contents]
    assert [repo.blob(name) for name in names] == contents
    assert {place(repo, name).stat().st_mode & 0o777 for name in names} == {0o444}
    assert not [*(repo.path / "objects").rglob("tmp_*")]


def test_one_that_is_there_is_as_good_as_new(repo: Repository) -> None:
    batch = Batch()
    name = batch.add(BLOB, b"a")
    batch.write(repo)
    os.utime(place(repo, name), (1, 1))
    before = place(repo, name).stat()
    batch.add(BLOB, b"a")
    batch.write(repo)
    after = place(repo, name).stat()
    assert (after.st_ino, after.st_mtime > before.st_mtime) == (before.st_ino, True)


def test_what_did_not_come_to_its_end_leaves_nothing(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    batch = Batch()
    names = [batch.add(BLOB, b"%d" % number) for number in range(PACK_FROM - 1)]
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RepositoryUnreadable, match="no space left"):
        batch.write(repo)
    assert not any(repo.has(name) for name in names)
    assert not [*(repo.path / "objects").rglob("tmp_*")]
