from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.library import bound_cache
from reconciler.repository.objects import Repository
from reconciler.repository.write import Blob, commit_tree, edit_tree

Git = Callable[..., str]


def chain(repo: Repository, length: int) -> list[str]:
    commits: list[str] = []
    for number in range(length):
        tree = edit_tree(repo, None, {"n": str(number).encode()})
        commits.append(commit_tree(repo, tree, commits[-1:], f"c{number}", number))
    return commits


def test_first_parents_of_a_long_branch(bare: Repository) -> None:
    commits = chain(bare, 300)
    assert bare.first_parents(None, commits[-1]) == commits
    assert bare.first_parents(commits[0], commits[-1]) == commits[1:]
    assert bare.first_parents(commits[-2], commits[-1]) == commits[-1:]
    assert bare.first_parents(commits[-1], commits[-1]) == []
    assert bare.root_commit(commits[-1]) == commits[0]
    assert bare.is_ancestor(commits[0], commits[-1])
    assert not bare.is_ancestor(commits[-1], commits[0])


def test_a_rewritten_branch_has_no_way_from_the_old_head(bare: Repository) -> None:
    commits = chain(bare, 5)
    amended = commit_tree(bare, bare.commit(commits[4]).tree, [commits[3]], "amended", 9)
    assert bare.first_parents(commits[4], amended) is None
    assert bare.first_parents(commits[3], amended) == [amended]
    assert bare.first_parents("0" * 40, amended) is None


def test_merged_commits_are_not_on_the_first_parent_chain(bare: Repository) -> None:
    one, two = chain(bare, 2)
    side = commit_tree(bare, bare.commit(one).tree, [one], "side", 5)
    merge = commit_tree(bare, bare.commit(two).tree, [two, side], "merge", 6)
    assert bare.first_parents(one, merge) == [two, merge]
    assert bare.first_parents(side, merge) is None
    assert bare.is_ancestor(side, merge)


def test_a_commit_is_told_whole(bare: Repository) -> None:
    tree = edit_tree(bare, None, {"x": b"1"})
    found = bare.commit(commit_tree(bare, tree, [], "Say\n\nmore\n", 1234))
    assert (found.tree, found.time, found.parents, found.message) == (tree, 1234, (), "Say\n\nmore\n")
    assert found.author == "Treeplane <treeplane@localhost>"


def test_entries_of_every_kind(clone: Path, git: Git) -> None:
    (clone / "run.sh").write_text("#!/bin/sh\n")
    (clone / "run.sh").chmod(0o755)
    (clone / "link").symlink_to("a.yaml")
    (clone / "dir").mkdir()
    (clone / "dir" / "ü.yaml").write_text("x")
    git(clone, "add", ".")
    git(clone, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git(clone, "commit", "-qm", "all kinds")
    repo = Repository(clone)
    tree = repo.commit(repo.resolve("main") or "").tree
    kinds = {e.name: (e.kind, e.executable) for e in repo.entries(tree)}
    assert kinds == {
        "a.yaml": ("blob", False),
        "dir": ("tree", False),
        "link": ("link", False),
        "run.sh": ("blob", True),
        "sub": ("commit", False),
    }
    umlaut = repo.entry_at(tree, "dir/ü.yaml")
    assert umlaut is not None
    assert (repo.blob(umlaut.id), repo.blob_size(umlaut.id)) == (b"x", 1)
    assert repo.tree_at(tree, "dir") == {e.name: e.id for e in repo.entries(tree)}["dir"]
    assert repo.tree_at(tree, "") == tree
    assert repo.tree_at(tree, "a.yaml") is None
    assert repo.entry_at(tree, "a.yaml/x") is None
    assert repo.entry_at(tree, "nope/x") is None


def test_a_name_hidden_in_an_id_is_not_found(bare: Repository) -> None:
    forged = (b"100644 x\0" + b"y" * 20)[:20].hex()  # a submodule's id is anybody's choice
    tree = edit_tree(bare, None, {"sub": Blob(forged, b"160000"), "z": b"1"})
    assert bare.entry_at(tree, "x") is None
    assert {e.name for e in bare.entries(tree)} == {"sub", "z"}


def test_resolve(clone: Path, git: Git) -> None:
    repo = Repository(clone)
    head = git(clone, "rev-parse", "HEAD")
    git(clone, "tag", "-a", "v1", "-m", "one")
    for text in ("main", "HEAD", "v1", head, head[:10]):
        assert repo.resolve(text) == head
    for text in ("nope", "", "v2", "HEAD:a.yaml", "0" * 40):
        assert repo.resolve(text) is None
    assert repo.ref("refs/heads/main") == head
    assert repo.ref("refs/heads/nope") is None


def test_a_linked_work_tree_reads_the_common_directory(clone: Path, tmp_path: Path, git: Git) -> None:
    git(clone, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    linked = Repository(tmp_path / "linked")
    assert linked.git_dir == (clone / ".git").resolve()
    assert linked.resolve("main") == git(clone, "rev-parse", "main")


def test_what_is_no_repository_says_so(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for path in (tmp_path / "plain", tmp_path / "absent"):
        with pytest.raises(RepositoryUnreadable, match=path.name):
            Repository(path)


def test_a_directory_inside_a_repository_is_not_one(clone: Path) -> None:
    (clone / "sub").mkdir()
    with pytest.raises(RepositoryUnreadable):
        Repository(clone / "sub")


def test_sha256_is_refused_by_name(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "new")
    with pytest.raises(RepositoryUnreadable, match="SHA-256"):
        Repository(tmp_path / "new")


def test_a_missing_object_says_what_to_do(bare: Repository) -> None:
    for read in (bare.blob, bare.entries, bare.commit, bare.blob_size):
        with pytest.raises(RepositoryUnreadable, match=f"lacks the object {'1' * 40}"):
            read("1" * 40)


def test_a_tree_that_is_looked_at_again_is_read_once(bare: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    small = edit_tree(bare, None, {f"{number}": b"" for number in range(10)})
    wide = edit_tree(bare, None, {f"{number:060}": b"" for number in range(300)})
    huge = edit_tree(bare, None, {f"{number:060}": b"" for number in range(2000)})
    asked: list[str] = []
    raw = bare.raw
    monkeypatch.setattr(bare, "raw", lambda tree, kind: asked.append(tree) or raw(tree, kind))
    picked = bare.pick(small, ["3", "nope"])
    asked.clear()
    for tree, names in ((small, 10), (wide, 300), (huge, 2000)):
        assert [len(bare.entries(tree)) for _ in range(3)] == [names] * 3
    assert bare.pick(small, ["3", "nope"]) == picked == {"3": bare.entries(small)[3]}
    assert [asked.count(tree) for tree in (small, wide, huge)] == [1, 1, 3]


@pytest.mark.parametrize("names", [0, 3, 1000])
def test_a_tree_is_counted_as_its_entries_are(bare: Repository, names: int) -> None:
    """Before it was looked at, and after; a wide one after its names were remembered as well."""
    tree = edit_tree(bare, None, {f"{number}/a": b"" for number in range(names)})
    assert bare.width(tree) == names
    for _ in range(3):
        bare.pick(tree, ["1"])
    assert len(bare.entries(tree)) == bare.width(tree) == names


def test_a_repository_that_is_opened_and_left_leaves_nothing_open(bare: Repository) -> None:
    """Files and memory of git's library go with the last user, and wait for no garbage collector."""
    commit_tree(bare, edit_tree(bare, None, {"a": b"a"}), [], "one", 1, "refs/heads/main")
    gc.collect()
    gc.disable()
    try:
        held = weakref.ref(Repository(bare.path).git)
        assert held() is None
        for _ in range(10):
            assert Repository(bare.path).ref("refs/heads/main")
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_asking_for_a_ref_again_and_again_takes_no_memory(bare: Repository) -> None:
    commit_tree(bare, edit_tree(bare, None, {"a": b"a"}), [], "one", 1, "refs/heads/main")

    def ask(times: int) -> int:
        for _ in range(times):
            for name in ("main", "nothing"):
                bare.ref("/".join(("refs", "heads", name)))
        return sys.getallocatedblocks()

    before = ask(10)
    assert ask(500) - before < 100


def test_what_git_s_library_remembers_is_bounded(bare: Repository) -> None:
    before, most = pygit2.settings.cached_memory
    try:
        bound_cache(before + 16 * 1024)
        for commit in chain(bare, 200):
            bare.commit(commit)
        assert pygit2.settings.cached_memory[0] < before + 20 * 1024
    finally:
        bound_cache(most)
