"""Objects of packs, by their indexes."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.packindex import holds, ids, merged
from reconciler.repository.packing import load, pack
from reconciler.repository.write import edit_tree

IDS = st.sets(st.binary(min_size=20, max_size=20), max_size=40)
HEAD = b"\xfftOc\0\0\0\x02" + bytes(255 * 4)


def written(path: Path, names: Sequence[bytes]) -> Path:
    path.write_bytes(HEAD + len(names).to_bytes(4, "big") + b"".join(names))
    return path


def test_an_index_names_what_git_says_it_does(bare: Repository, git: Callable[..., str]) -> None:
    edit_tree(bare, None, {f"{number}": f"{number}".encode() for number in range(200)})
    pack(bare.path)
    assert load(bare.path).packs >= 1
    for index in (bare.path / "objects" / "pack").glob("*.idx"):
        shown = sorted(line.split()[0] for line in git(bare.path, "verify-pack", "-v", str(index)).splitlines()
                       if len(line.split()) >= 5 and line.split()[1] in ("blob", "tree", "commit"))  # fmt: skip
        assert [name.hex() for name in ids(index)] == shown


@given(loose=IDS, one=IDS, two=IDS, missing=IDS)
def test_what_is_merged_is_there_once_and_what_is_missing_is_missed(
    tmp_path_factory: pytest.TempPathFactory, loose: set[bytes], one: set[bytes], two: set[bytes], missing: set[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("packs")
    indexes = [written(folder / f"{number}.idx", sorted(each)) for number, each in enumerate((one, two))]
    every = sorted(loose | one | two)
    names = [each.hex() for each in sorted(loose)]
    assert list(merged(names, indexes)) == every
    made = written(folder / "made.idx", sorted(set(every) - missing))
    assert holds(made, merged(names, indexes)) == (not missing & set(every))


@pytest.mark.parametrize("content", [b"", b"PACK", HEAD, HEAD + (2).to_bytes(4, "big") + bytes(20)])
def test_what_is_no_index_or_ends_early_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.idx").write_bytes(content)
    with pytest.raises(RepositoryUnreadable):
        list(ids(tmp_path / "x.idx"))


def test_many_objects_take_no_memory(tmp_path: Path) -> None:
    names = sorted(hashlib.sha1(b"%d" % number).digest() for number in range(50_000))
    index = written(tmp_path / "x.idx", names)
    del names
    tracemalloc.start()
    try:
        assert holds(index, merged([], [index]))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_000_000
