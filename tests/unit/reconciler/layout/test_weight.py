"""How much a commit adds: told from the trees that differ, and never by walking more than was asked for."""

from __future__ import annotations

import pytest

from reconciler.layout.weight import added
from reconciler.repository.objects import Repository
from reconciler.repository.write import Batch, Blob, edit_tree

BEFORE = {"a/one": b"1", "a/two": b"2", "b/c/d": b"3", "file": b"4"}


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"a/one": b"changed"}, 2),  # and its directory
        ({"a/one": None, "b": None}, 1),  # what goes is not added
        ({"new/x": b"", "new/y": b""}, 3),
        ({"b/c/d": None, "b/c/d/e": b""}, 4),  # a file that becomes a directory
        ({"a": None, "z/one": b"1"}, 2),
    ],
)
def test_what_a_tree_adds_to_another(repo: Repository, changes: dict[str, bytes | Blob | None], count: int) -> None:
    old = edit_tree(repo, None, BEFORE)
    new = edit_tree(repo, old, changes)
    assert added(repo, old, new, 1000) == count


@pytest.mark.parametrize("filled", [True, False])
def test_it_ends_whatever_the_tree_holds(repo: Repository, filled: bool) -> None:
    """Ten levels of ten names for one directory are ten billion."""
    batch = Batch()
    tree = batch.add(2, b"100644 file\0" + bytes.fromhex(batch.add(3, b"")) if filled else b"")
    for _ in range(10):
        tree = batch.add(2, b"".join(b"40000 %d\0" % number + bytes.fromhex(tree) for number in range(10)))
    batch.write(repo)
    assert 500 < added(repo, edit_tree(repo, None, {}), tree, 500) < 520
