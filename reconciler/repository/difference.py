"""What differs between two trees, read by their ids: equal ids are equal content, so only unequal subtrees are opened.

Called by layout and the loader. libgit2's own diff reads both trees whole, so it costs the repository, not the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reconciler.repository.objects import Repository, TreeEntry


class FileChange(NamedTuple):
    """A file that was created (`old` None), deleted (`new` None) or changed. Entries are never trees."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None


def difference(repo: Repository, old_tree: str | None, new_tree: str | None, prefix: str = "") -> Iterator[FileChange]:
    """Every file that differs, by path; None stands for an empty tree, `prefix` is put before each path."""
    if old_tree == new_tree:
        return
    if old_tree is not None and new_tree is not None:
        sides: tuple[Sequence[TreeEntry], Sequence[TreeEntry]] = repo.unlike(old_tree, new_tree)
    else:
        sides = (_of(repo, old_tree), _of(repo, new_tree))
    old, new = ({entry.name: entry for entry in side} for side in sides)
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        path = f"{prefix}/{name}" if prefix else name
        old_file = before if before is not None and before.kind != "tree" else None
        new_file = after if after is not None and after.kind != "tree" else None
        if old_file is not None or new_file is not None:
            yield FileChange(path, old_file, new_file)
        old_sub = before.id if before is not None and before.kind == "tree" else None
        new_sub = after.id if after is not None and after.kind == "tree" else None
        if old_sub is not None or new_sub is not None:
            yield from difference(repo, old_sub, new_sub, path)


def walk(repo: Repository, tree: str, prefix: str = "") -> Iterator[tuple[str, TreeEntry]]:
    """Every file below a tree with its path, in git's order. Trees themselves are not named."""
    for entry in repo.entries(tree):
        path = f"{prefix}/{entry.name}" if prefix else entry.name
        if entry.kind == "tree":
            yield from walk(repo, entry.id, path)
        else:
            yield path, entry


def _of(repo: Repository, tree: str | None) -> Sequence[TreeEntry]:
    return repo.entries(tree) if tree is not None else ()
