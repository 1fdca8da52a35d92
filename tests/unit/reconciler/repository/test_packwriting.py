"""Packs that this process writes are what git makes of the same objects."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.repository import library, packwriting
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.write import object_name, write_pack

BLOB = 3


def git(repo: Path, *words: str, given: bytes = b"") -> bytes:
    return subprocess.run(["git", "-C", str(repo), *words], input=given, capture_output=True, check=True).stdout


def named(*contents: bytes) -> dict[str, tuple[int, bytes]]:
    return {object_name(BLOB, data): (BLOB, data) for data in contents}


REPEATED = st.builds(lambda data, times: data * times, st.binary(min_size=1, max_size=9), st.integers(1, 5000))
CONTENTS = st.lists(st.binary(max_size=40) | REPEATED, min_size=1, max_size=40)


@settings(deadline=None, max_examples=25)
@given(CONTENTS)
def test_it_is_git_s_own_index_and_everything_is_read_back(contents: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.git"
        library.create(bare)
        repo = Repository(bare)
        objects = named(*contents)
        write_pack(repo, objects)
        [pack] = (bare / "objects" / "pack").glob("pack-*.pack")
        other = Path(folder) / "git.idx"
        git(bare, "index-pack", "--strict", "--no-rev-index", "-o", str(other), str(pack))
        assert pack.with_suffix(".idx").read_bytes() == other.read_bytes()
        assert {path.stat().st_mode & 0o777 for path in pack.parent.iterdir()} == {0o444}
        git(bare, "fsck", "--full", "--strict")
        git(bare, "verify-pack", str(pack))
        assert {name: repo.blob(name) for name in objects} == {name: data for name, (_, data) in objects.items()}


@pytest.mark.parametrize("flushes", [True, False])
def test_the_same_pack_twice_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushes: bool) -> None:
    library.create(tmp_path)
    monkeypatch.setattr(library._Flushing, "on", flushes)
    for _ in range(2):
        write_pack(Repository(tmp_path), named(b"a", b"b"))
    assert len([*(tmp_path / "objects" / "pack").iterdir()]) == 2
    assert Repository(tmp_path).blob(object_name(BLOB, b"a")) == b"a"


def test_one_that_is_too_large_for_such_an_index_is_left_to_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.create(tmp_path)
    monkeypatch.setattr(packwriting, "MOST", 10)
    write_pack(Repository(tmp_path), named(b"a", b"b"))
    assert Repository(tmp_path).blob(object_name(BLOB, b"b")) == b"b"


def test_what_did_not_come_to_its_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.create(tmp_path)
    replace = Path.replace

    def full(path: Path, target: Path) -> Path:
        if str(target).endswith(".idx"):
            raise OSError("no space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RepositoryUnreadable, match="no space left"):
        write_pack(Repository(tmp_path), named(b"a", b"b"))
    assert [path.suffix for path in (tmp_path / "objects" / "pack").iterdir()] == [".pack"]
    assert not Repository(tmp_path).has(object_name(BLOB, b"a"))
