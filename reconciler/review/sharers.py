"""Whose rendered directories may be made of what two trees share and differ in, by what files name.

Called by concerned and by `treeplane log`, which have no rows of a store that say so. A directory that is shared is
named by its path, however that is written, so by its own name at least: whoever names that may be meant.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from reconciler.layout.inputs import shared_by, shares_differ, states
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.mentions import mentions


def sharers(before: WorkspaceTree, after: WorkspaceTree) -> Iterator[WorkspaceDir]:
    """The workspaces of either tree that name a shared directory in which something differs, or one that names such a
    one; some of them twice."""
    if not shares_differ(before, after):
        return
    shared = sorted({*shared_by(before), *shared_by(after)})
    one_sided = {*shared_by(before)} ^ {*shared_by(after)}
    differ = {s for s in shared if s in one_sided or states(before, (s,)) != states(after, (s,))}
    for tree in (before, after):
        names = {posixpath.basename(each) for each in _fed(tree, differ, shared)}
        for file in mentions(tree.repo, tree.tree_id, tree.root, names):
            owner = _owner(tree, file)
            if owner is not None and any(tree.rendered(owner)):
                yield owner


def _fed(tree: WorkspaceTree, differ: set[str], shared: list[str]) -> set[str]:
    """The shared directories that are made of those that differ, themselves among them."""
    fed = {*differ}
    while True:
        names = {posixpath.basename(each) for each in fed}
        more = {s for s in shared if s not in fed and mentions(tree.repo, tree.tree_id, s, names)}
        if not more:
            return fed
        fed |= more


def _owner(tree: WorkspaceTree, file: str) -> WorkspaceDir | None:
    """The workspace in whose directory a file is, ignored or not."""
    above, found = file.rpartition("/")[0], None
    while found is None and above.startswith(tree.root):
        found, above = tree.owner(f"{above}/x"), above.rpartition("/")[0]
    return found
