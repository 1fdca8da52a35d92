from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.repository.difference import difference, walk
from reconciler.repository.errors import RefMoved, RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.write import PACK_FROM, Blob, commit_tree, edit_tree, move_ref

Git = Callable[..., str]
Files = dict[str, bytes]

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
names = st.sampled_from(["a", "b", "a-", "a0", "é"])
file_paths = st.lists(names, min_size=1, max_size=4).map("/".join)
contents = st.sampled_from([b"", b"1", b"22"])
shared = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def file_sets(draw: st.DrawFn) -> Files:
    out: Files = {}
    for path, content in draw(st.dictionaries(file_paths, contents, max_size=12)).items():
        if not any(path.startswith(p + "/") or p.startswith(path + "/") for p in out):
            out[path] = content
    return out


def files_of(repo: Repository, tree: str) -> Files:
    return {path: repo.blob(entry.id) for path, entry in walk(repo, tree)}


def edited(files: Files, new: Files, gone: set[str]) -> Files:
    """The same as edit_tree, on a dict."""
    kept = {p: c for p, c in files.items() if not any(p == g or p.startswith(g + "/") for g in gone)}
    for path in new:
        kept = {p: c for p, c in kept.items() if not p.startswith(path + "/") and not path.startswith(p + "/")}
    return kept | new


@shared
@given(base=file_sets(), new=file_sets(), gone=st.sets(file_paths, max_size=4))
def test_edit_tree_is_a_dict_update(bare: Repository, base: Files, new: Files, gone: set[str]) -> None:
    gone = {g for g in gone if not any(g == n or g.startswith(n + "/") for n in new)}
    start = edit_tree(bare, None, base)
    assert files_of(bare, start) == base
    result = edit_tree(bare, start, {**dict.fromkeys(gone), **new})
    assert files_of(bare, result) == edited(base, new, gone)
    assert result == edit_tree(bare, None, edited(base, new, gone)), "equal content is an equal id"


@shared
@given(old=file_sets(), new=file_sets())
def test_difference_is_the_dicts_difference(bare: Repository, old: Files, new: Files) -> None:
    found = {
        c.path: (c.old and bare.blob(c.old.id), c.new and bare.blob(c.new.id))
        for c in difference(bare, edit_tree(bare, None, old), edit_tree(bare, None, new))
    }
    paths = {p for p in old.keys() | new.keys() if old.get(p) != new.get(p)}
    assert found == {p: (old.get(p), new.get(p)) for p in paths}


def test_difference_reads_only_what_differs(bare: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    base = edit_tree(bare, None, {f"{i:02}/{j:02}/f": b"%d" % (i * j) for i in range(40) for j in range(40)})
    new = edit_tree(bare, base, {"07/09/f": b"new"})
    reads = []
    raw = bare.raw
    monkeypatch.setattr(bare, "raw", lambda *a: reads.append(a) or raw(*a))
    assert [c.path for c in difference(bare, base, new, "top")] == ["top/07/09/f"]
    assert len(reads) == 6


def test_a_mode_alone_is_a_difference(bare: Repository) -> None:
    plain = edit_tree(bare, None, {"f": b"1"})
    blob = bare.entries(plain)[0].id
    runnable = edit_tree(bare, plain, {"f": Blob(blob, b"100755")})
    (change,) = difference(bare, plain, runnable)
    assert change.old is not None
    assert change.new is not None
    assert (change.old.executable, change.new.executable) == (False, True)


def test_empty_trees(bare: Repository) -> None:
    assert edit_tree(bare, None, {}) == EMPTY_TREE
    full = edit_tree(bare, None, {"a/b": b"1"})
    assert edit_tree(bare, full, {"a/b": None}) == EMPTY_TREE
    assert edit_tree(bare, full, {}) == full
    assert bare.entries(EMPTY_TREE) == []


@pytest.mark.parametrize("path", ["", "/a", "a//b", "a/../b", ".", ".git/config", "x/.GIT", "a\0b"])
def test_paths_that_git_cannot_hold(bare: Repository, path: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        edit_tree(bare, None, {path: b""})


def test_a_path_cannot_be_file_and_directory(bare: Repository) -> None:
    for changes in ({"a": b"", "a/b": b""}, {"a/b": b"", "a": b""}):
        with pytest.raises(ValueError, match="a file"):
            edit_tree(bare, None, changes)
    full = edit_tree(bare, None, {"a": b"1"})
    for order in (("a", "a/b"), ("a/b", "a")):
        assert files_of(bare, edit_tree(bare, full, {p: None if p == "a" else b"2" for p in order})) == {"a/b": b"2"}


def test_git_finds_nothing_to_complain(bare: Repository, git: Git) -> None:
    small = edit_tree(bare, None, {"a.b": b"1", "a/b": b"2", "a0": b"3"})
    large = edit_tree(bare, small, {f"d{i % 7}/{i}": b"x" * i for i in range(300)})
    first = commit_tree(bare, small, [], "one", 1, "refs/heads/main")
    commit_tree(bare, large, [first], "two", 2, "refs/heads/main", first)
    assert git(bare.path, "fsck", "--strict", "--full") == ""
    assert git(bare.path, "count-objects", "-v").split("packs: ")[1][0] == "1"
    assert git(bare.path, "show", "main:a/b") == "2"


def test_ten_thousand_files_take_seconds(bare: Repository) -> None:
    began = time.monotonic()
    edit_tree(bare, None, {f"{i % 100}/{i}/status.yaml": b"status: %d\n" % i * 20 for i in range(10_000)})
    assert time.monotonic() - began < 20


def test_compare_and_swap(bare: Repository) -> None:
    ref = "refs/heads/treeplane/status"
    tree = edit_tree(bare, None, {"a": b"1"})
    one = commit_tree(bare, tree, [], "one", 1, ref)
    assert bare.ref(ref) == one
    for wrong in (None, "1" * 40):
        with pytest.raises(RefMoved):
            commit_tree(bare, tree, [one], "lost", 2, ref, wrong)
    two = commit_tree(bare, tree, [one], "two", 3, ref, one)
    assert bare.ref(ref) == two
    with pytest.raises(RefMoved):
        move_ref(bare, ref, None, one)
    move_ref(bare, ref, None, two)
    assert bare.ref(ref) is None


def test_a_repository_that_is_moved_away_is_not_made_again(bare: Repository) -> None:
    """What is written meanwhile fails, whichever way it is written, so that it can be moved back."""
    ref, other = "refs/heads/treeplane/status", "refs/heads/other"
    tree = edit_tree(bare, None, {"a": b"1"})
    one = commit_tree(bare, tree, [], "one", 1, ref)
    two = commit_tree(bare, tree, [one], "two", 2)
    away = bare.path.with_name("away")
    bare.path.rename(away)
    many = {f"{number}": b"%d" % number for number in range(PACK_FROM)}
    for write in (
        lambda: edit_tree(bare, None, {"b": b"2"}),
        lambda: edit_tree(bare, None, many),
        lambda: commit_tree(bare, tree, [], "lost", 3),
        lambda: move_ref(bare, ref, two, one),
        lambda: move_ref(bare, other, one, None),
    ):
        with pytest.raises(RepositoryUnreadable, match="is away"):
            write()
        assert not bare.path.exists()
    away.rename(bare.path)
    move_ref(bare, ref, two, one)
    assert (bare.ref(ref), bare.ref(other)) == (two, None)


def test_a_branch_named_as_a_directory_of_branches(bare: Repository) -> None:
    tree = edit_tree(bare, None, {"a": b"1"})
    commit_tree(bare, tree, [], "one", 1, "refs/heads/treeplane/status")
    with pytest.raises(RepositoryUnreadable, match="refs/heads/treeplane"):
        commit_tree(bare, tree, [], "two", 2, "refs/heads/treeplane")


def test_an_unwritable_repository_says_so(bare: Repository, tmp_path: Path) -> None:
    tree = edit_tree(bare, None, {"a": b"1"})
    for what, parents in (("1" * 40, []), (tree, ["2" * 40])):
        with pytest.raises(RepositoryUnreadable, match=r"cannot be written.*(1|2){40}"):
            commit_tree(bare, what, parents, "of what is not there", 1)
